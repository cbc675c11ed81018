"""manifest.json: what a prepared corpus holds, what became of every record, and its fingerprint.

Written last, so a folder without one is no corpus. The fingerprint covers everything that
determines the data (every shard's hash, the tokenizer) and nothing that does not (dates, machine,
number of workers): two corpora with the same fingerprint give the same batches.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any

import cattrs

from isoglot.corpus.disk import write_atomically
from isoglot.corpus.fit import Fit
from isoglot.corpus.heldout import Split
from isoglot.corpus.readers import Kind
from isoglot.corpus.shards import ShardEntry
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FILE = "manifest.json"
FORMAT = 2
_AGAIN = "Run isoglot prepare again."


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
        together = list(all_counts)
        return cls(
            lines=sum(counts.lines for counts in together),
            bytes=sum(counts.bytes for counts in together),
            read=sum(counts.read for counts in together),
            kept=sum(counts.kept for counts in together),
            heldout=sum(counts.heldout for counts in together),
            dropped=_added(counts.dropped for counts in together),
            contaminated=_added(counts.contaminated for counts in together),
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
class FileEntry:
    """A file as it was: an input, or a part of the tokenizer."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerEntry:
    """The tokenizer the ids belong to."""

    fingerprint: str
    size: int
    files: tuple[FileEntry, ...]
    fits: dict[str, Fit] = field(default_factory=dict)
    """Language -> what its text became."""


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


def fingerprint_of(shards: list[ShardEntry], tokenizer_fingerprint: str) -> str:
    """SHA-256 over all that determines the data."""
    parts = [tokenizer_fingerprint]
    parts += [f"{shard.file} {shard.sha256}" for shard in sorted(shards, key=lambda s: s.file)]
    return sha256("\n".join(parts).encode()).hexdigest()


def file_entry(path: Path, name: str) -> FileEntry:
    """Size and hash of a file that is there."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return FileEntry(file=name, bytes=path.stat().st_size, sha256=digest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes manifest.json; from then on the folder is a corpus."""
    text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
    write_atomically(folder / FILE, (text + "\n").encode())


def read_manifest(folder: Path) -> Manifest:
    """Reads manifest.json."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CorpusError(
            f"{folder}: is not a prepared corpus, or preparing it was interrupted: it has no "
            f"{FILE}. Run isoglot prepare."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error}). {_AGAIN}") from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise CorpusError(f"{path}: is damaged at line {error.lineno}. {_AGAIN}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise CorpusError(
            f"{path}: has format {found}, this version of Isoglot reads {FORMAT}. {_AGAIN}"
        )
    converter = cattrs.Converter(forbid_extra_keys=True)
    try:
        manifest = converter.structure(data, Manifest)
    except cattrs.BaseValidationError as error:
        fault = "; ".join(cattrs.transform_error(error)[:3])
        raise CorpusError(f"{path}: is damaged ({fault}). {_AGAIN}") from error
    if fingerprint_of(manifest.shards(), manifest.tokenizer.fingerprint) != manifest.fingerprint:
        raise CorpusError(f"{path}: is damaged: its fingerprint does not fit its shards. {_AGAIN}")
    return manifest


def verify_files(folder: Path, manifest: Manifest, *, hashes: bool) -> None:
    """Compares every file with the manifest: that it is there, its size and, if asked, its hash."""
    entries: list[ShardEntry | FileEntry] = [*manifest.shards(), *manifest.tokenizer.files]
    for entry in entries:
        path = folder / entry.file
        if not path.is_file():
            raise CorpusError(f"{path}: is missing. {_AGAIN}")
        size = path.stat().st_size
        if size != entry.bytes:
            raise CorpusError(
                f"{path}: is damaged: it has {size} bytes and not {entry.bytes}. {_AGAIN}"
            )
        if hashes and file_entry(path, entry.file).sha256 != entry.sha256:
            raise CorpusError(
                f"{path}: is damaged: its content is not the one that was written. {_AGAIN}"
            )


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
