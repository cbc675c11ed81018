"""manifest.json: what a prepared corpus holds, what became of every record, and its fingerprint.

Written last, so a folder without one is no corpus. The fingerprint covers everything that
determines the data (every shard's hash, the tokenizer) and nothing that does not (dates, machine,
number of workers): two corpora with the same fingerprint give the same batches.

The first field of a manifest is the SHA-256 of the file with zeros in its place, so that any
changed byte of it is noticed. The counts of pairs and the knowledge store have such manifests, too.
"""

from __future__ import annotations

import gc
import json
import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import cattrs

from isoglot.atomic import write_bytes
from isoglot.corpus.storage.shards import PREPARE_AGAIN, FileEntry, Kind, ShardEntry, Split
from isoglot.errors import CorpusError, is_name
from isoglot.remote.corpora import cached_corpus_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FILE = "manifest.json"
FORMAT = 4
_AUTO_HASH_BYTES = 2 * 2**30

T = TypeVar("T")
Verify = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of the records of one language of a source: read = kept + all dropped."""

    lines: int = 0
    """Lines (rows, segments) of the files; a line may hold several sentences."""
    bytes: int = 0
    """UTF-8 bytes of the text read."""
    read: int
    """Sentences or pairs."""
    kept: int
    """Train and held-out together."""
    heldout: int
    dropped: dict[str, int]
    """Reason -> records."""
    contaminated: dict[str, int] = field(default_factory=dict)
    """Evaluation file -> records that were dropped because they are in it."""

    @classmethod
    def sum(cls, all_counts: Iterable[Counts]) -> Counts:
        """The counts of several languages or sources together."""
        rows = [asdict(counts) for counts in all_counts]
        numbers = ("lines", "bytes", "read", "kept", "heldout")
        return cls(
            **{name: sum(row[name] for row in rows) for name in numbers},
            dropped=add_counts(row["dropped"] for row in rows),
            contaminated=add_counts(row["contaminated"] for row in rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry:
    """The shards of one (source, language, split)."""

    shards: tuple[ShardEntry, ...]
    rows: int
    tokens: dict[str, int]
    """Column -> tokens, over all shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """One source: its languages (or pairs, as the settings name them), and their counts."""

    kind: Kind
    languages: dict[str, dict[Split, SplitEntry]]
    counts: dict[str, Counts]
    """Language -> what became of its records."""

    def total(self) -> Counts:
        """The counts of all languages together."""
        return Counts.sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerStats:
    """Counts over the encoded text of one language: integers, so that sums are exact."""

    words: int = 0
    tokens: int = 0
    unknown: int = 0
    """Tokens that are the unknown token."""
    bytes: int = 0
    """Tokens that are single bytes, for characters without a piece of their own."""

    def __add__(self, other: TokenizerStats) -> TokenizerStats:
        """The sum of both counts."""
        own = asdict(self)
        return TokenizerStats(**{name: own[name] + more for name, more in asdict(other).items()})

    @property
    def coverage(self) -> float:
        """Share of the tokens that are neither unknown nor single bytes."""
        return 1 - (self.unknown + self.bytes) / max(self.tokens, 1)

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that are unknown."""
        return self.unknown / max(self.tokens, 1)

    @property
    def tokens_per_word(self) -> float:
        """Average number of tokens per word (the fertility of the tokenizer)."""
        return self.tokens / max(self.words, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerEntry:
    """The tokenizer the ids belong to."""

    fingerprint: str
    size: int
    files: tuple[FileEntry, ...]
    statistics: dict[str, TokenizerStats] = field(default_factory=dict)
    """Language -> counts over its encoded text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All of manifest.json."""

    format: int = FORMAT
    isoglot: str
    """The version of Isoglot that wrote the corpus."""
    fingerprint: str
    languages: tuple[str, ...]
    """Sorted; a language's id is its index here."""
    tokenizer: TokenizerEntry
    sources: dict[str, SourceEntry]
    settings: dict[str, Any]
    inputs: tuple[FileEntry, ...]
    index: tuple[FileEntry, ...] = ()
    """Files made from the shards, which are made again where they are missing."""

    def total(self) -> Counts:
        """The counts of all sources together."""
        return Counts.sum(source.total() for source in self.sources.values())

    def shards(self) -> list[ShardEntry]:
        """Every shard of the corpus."""
        return [
            shard
            for source in self.sources.values()
            for splits in source.languages.values()
            for split in splits.values()
            for shard in split.shards
        ]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes manifest.json; from then on the folder is a corpus."""
    save_manifest(folder / FILE, manifest)


_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{64})"')


def save_manifest(path: Path, manifest: Any) -> None:
    """Writes a dataclass with a field `format` as JSON that begins with its own checksum."""
    content = {"checksum": "0" * 64, **asdict(manifest)}
    data = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
    write_bytes(path, data.replace(b"0" * 64, _checksum(data).encode(), 1))


def _checksum(data: bytes) -> str:
    """The SHA-256 of a manifest with zeros in the place of its checksum; empty if it has none."""
    found = _CHECKSUM.search(data)
    if found is None:
        return ""
    return sha256(data[: found.start(1)] + b"0" * 64 + data[found.end(1) :]).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Reads manifest.json; raises if it is missing, damaged or of another format."""
    manifest = load_manifest(
        folder / FILE,
        Manifest,
        format_version=FORMAT,
        missing=f"{folder}: is not a prepared corpus, or preparing it was interrupted: it has no "
        f"{FILE}. Run isoglot prepare.",
        remedy=PREPARE_AGAIN,
    )
    names = [
        name for source, entry in manifest.sources.items() for name in (source, *entry.languages)
    ]
    for name in (*manifest.languages, *names):
        if not is_name(name):
            raise CorpusError(
                f"{folder / FILE}: {name!r:.60} cannot be the name of a source or a language. "
                f"{PREPARE_AGAIN}"
            )
    files, tokenizer = manifest.shards(), manifest.tokenizer.fingerprint
    check_fingerprint(folder / FILE, manifest.fingerprint, files, tokenizer, remedy=PREPARE_AGAIN)
    return manifest


def load_manifest(
    path: Path, manifest_type: type[T], *, format_version: int, missing: str, remedy: str
) -> T:
    """A file of `save_manifest`, as a dataclass.

    `missing` is the message where there is no such file; `remedy` ends all others.
    """
    with _without_collection():
        return _load_manifest(path, manifest_type, format_version, missing, remedy)


def _load_manifest(
    path: Path, manifest_type: type[T], format_version: int, missing: str, remedy: str
) -> T:
    try:
        raw = path.read_bytes()
        data = json.loads(raw.decode("utf-8"))
    except FileNotFoundError as error:
        raise CorpusError(missing) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error}). {remedy}") from error
    except json.JSONDecodeError as error:
        raise CorpusError(f"{path}: is damaged at line {error.lineno}. {remedy}") from error
    except (RecursionError, ValueError) as error:
        raise CorpusError(f"{path}: is damaged ({error}). {remedy}") from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != format_version:
        raise CorpusError(
            f"{path}: has format {found}; this version of Isoglot reads {format_version}. {remedy}"
        )
    checksum = data.pop("checksum", None)
    if not checksum or checksum != _checksum(raw):
        raise CorpusError(f"{path}: is damaged: it is not as it was written. {remedy}")
    try:
        return cattrs.Converter(forbid_extra_keys=True).structure(data, manifest_type)
    except cattrs.BaseValidationError as error:
        fault = "; ".join(cattrs.transform_error(error)[:3])
        raise CorpusError(f"{path}: is damaged ({fault}). {remedy}") from error


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection in the block, which makes very many objects that stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def fingerprint_of(files: Iterable[FileEntry], tokenizer_fingerprint: str) -> str:
    """SHA-256 over the tokenizer and the names and contents of data files."""
    parts = [tokenizer_fingerprint]
    parts += [f"{entry.file} {entry.sha256}" for entry in sorted(files, key=lambda e: e.file)]
    return sha256("\n".join(parts).encode()).hexdigest()


def check_fingerprint(
    path: Path, fingerprint: str, files: Iterable[FileEntry], tokenizer: str, *, remedy: str
) -> None:
    """Raises unless the fingerprint in the manifest at `path` is that of its files."""
    if fingerprint_of(files, tokenizer) != fingerprint:
        raise CorpusError(f"{path}: is damaged: its fingerprint does not match its files. {remedy}")


def verify_files(
    folder: Path, files: Iterable[FileEntry], *, verify: Verify = "auto", remedy: str
) -> None:
    """Raises unless every file is there with its size and content (SHA-256).

    Files of a remote corpus may be missing: they are fetched, and checked, when they are read.
    Contents are not compared if `verify` is "never", or "auto" and the files exceed 2 GiB.
    """
    files = list(files)
    total = sum(entry.bytes for entry in files)
    contents = verify == "always" or (verify == "auto" and total <= _AUTO_HASH_BYTES)
    start = f"{folder}{os.sep}"
    for entry in files:
        size, fault = _size_of(start + entry.file), None
        if size is None:
            if cached_corpus_of(folder) is not None:
                continue
            raise CorpusError(f"{folder / entry.file}: is missing. {remedy}")
        if size != entry.bytes:
            fault = f"it has {size} bytes and not {entry.bytes}"
        elif contents and FileEntry.of(folder / entry.file, entry.file).sha256 != entry.sha256:
            fault = "its content differs from what was written"
        if fault is not None:
            raise CorpusError(f"{folder / entry.file}: is damaged: {fault}. {remedy}")


def _size_of(path: str) -> int | None:
    """The bytes of a file; none if there is no file. A corpus may have 100,000 of them."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a Path would take five times as long)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if S_ISREG(found.st_mode) else None


def add_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several counts, by sorted name."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
