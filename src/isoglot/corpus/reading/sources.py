"""Sources: the settings of raw text, resolved to subsets and groups of files.

A subset is one language (or pair of languages) of one source: its files, how they are read, and the
folder of its shards. A file group is the smallest part of a subset that can be read alone, one file
for most formats. Wrong names and paths in the settings are found here, before any work is done.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.sentences import SplitMode
from isoglot.corpus.reading.files import refuse_kernel_files, require_file
from isoglot.corpus.reading.line_ranges import LineRange
from isoglot.corpus.reading.reader import LineReader
from isoglot.corpus.reading.registry import reader_for
from isoglot.corpus.storage.shards import Kind, columns_of
from isoglot.errors import CorpusError, RecipeError
from isoglot.fetching import ProgressLines, is_remote, resolve
from isoglot.folders import with_home
from isoglot.languages import canonical, is_language, split_pair
from isoglot.remote.hub_datasets import hub_files, is_hub_dataset
from isoglot.remote.paths import find_remote
from isoglot.remote.urls import as_url, is_streamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isoglot.corpus.reading.reader import Reader, Record, Skipped

_SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
FETCHED = "raw"
"""Folder for what is downloaded, relative to `base`."""
_RESERVED = ("tokenizer", "cooccurrence", "dropped")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One source of raw text."""

    kind: Kind = "text"
    """What it holds: `text` (sentences of one language) or `pairs` (translations)."""
    format: str = "lines"
    """How its files are read: `lines`, `jsonl`, `tsv`, `tmx` and others (docs/prepare.md)."""
    options: dict[str, str | int | bool] = field(default_factory=dict)
    """Settings of the format, such as `{field: body}` for jsonl (docs/prepare.md)."""
    split: SplitMode = "lines"
    """How a text becomes sentences: not at all, at line ends inside it, or by rules for its
    language."""
    files: dict[str, tuple[str, ...]]
    """Language (`en`) or pair (`en-de`) -> files or patterns, relative to `base`; URLs (`s3://`,
    `gs://`, `https://`, `hf://datasets/`), read where they lie; or names that `isoglot fetch`
    knows, downloaded to its folder `raw`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One language (or pair) of one source."""

    source: str
    language: str
    """Its code (`isoglot.languages`)."""
    spelled: tuple[str, ...]
    """Each language as the settings spell it: columns and suffixes of files may be called so."""
    kind: Kind
    format: str
    options: dict[str, str | int | bool]
    split: SplitMode
    files: tuple[Path, ...]
    """All its files; none in a `FileGroup`."""

    @property
    def folder(self) -> str:
        """Where its shards go, inside the corpus."""
        return f"{self.source}/{self.language}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The language of each column: one for text, two for pairs."""
        return tuple(self.language.split("-")) if self.kind == "pairs" else (self.language,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its shards that hold token ids."""
        return columns_of(self.kind)

    def reader(self) -> Reader:
        """The reader its format names."""
        where = f"sources.{self.source}"
        return reader_for(self.format, self.options, self.spelled, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files of a subset that are read together, and apart from all others."""

    subset: Subset
    """Without its files, which may be many."""
    number: int
    """Which of the subset's groups it is."""
    files: tuple[Path, ...]
    part: int = 0
    """Which part of a group of large files."""
    ranges: tuple[LineRange, ...] = ()
    """The lines of each file that belong to the part; none: all."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        lines = f" from line {self.ranges[0].first:,}" if self.ranges else ""
        return " and ".join(map(str, self.files)) + lines

    @property
    def place(self) -> str:
        """A path for its files in the work folder."""
        part = f"-{self.part:05d}" if self.ranges else ""
        return f"{self.subset.folder}/{self.number:05d}{part}"

    def records(self) -> Iterator[Record | Skipped]:
        """All its records, in order."""
        reader = self.subset.reader()
        if self.ranges:
            assert isinstance(reader, LineReader), "only these are split"
            return reader.read_ranges(self.files, self.ranges)
        return reader.read(self.files)


def find_subsets(sources: Mapping[str, SourceConfig], base: Path) -> list[Subset]:
    """The subsets of all sources, in the order of their names."""
    if not sources:
        raise RecipeError("sources: there are none. Name at least one source of text or pairs.")
    subsets = []
    for source, config in sorted(sources.items()):
        _check_source(source, config)
        for language, spelled in sorted(_languages(source, config).items()):
            name = "-".join(spelled)
            patterns, where = config.files[name], f"sources.{source}.files.{name}"
            subset = Subset(
                source=source,
                language=language,
                spelled=spelled,
                kind=config.kind,
                format=config.format,
                options=config.options,
                split=config.split,
                files=(),
            )
            reader = subset.reader()
            patterns = tuple(file for pattern in patterns for file in _local(pattern, base, name))
            subset = replace(subset, files=expand_patterns(patterns, base, where, reader.files_of))
            fault = reader.check_files(subset.files)
            if fault is not None:
                raise RecipeError(f"{where}: {fault}.")
            subsets.append(subset)
    return subsets


def group_files(subsets: list[Subset]) -> list[FileGroup]:
    """The file groups of all subsets, in corpus order."""
    groups = []
    for subset in subsets:
        step = subset.reader().together
        without_files = replace(subset, files=())
        groups += [
            FileGroup(subset=without_files, number=number, files=subset.files[start : start + step])
            for number, start in enumerate(range(0, len(subset.files), step))
        ]
    return groups


def _check_source(source: str, config: SourceConfig) -> None:
    where = f"sources.{source}"
    if not _SOURCE_NAME.fullmatch(source) or source in _RESERVED:
        raise RecipeError(
            f"{where}: a source's name becomes a folder; use letters, digits, '-' and '_', "
            f"and not {' or '.join(map(repr, _RESERVED))}."
        )
    if not config.files:
        raise RecipeError(f"{where}.files: there are none. Name the files of each language.")
    if config.kind == "pairs" and config.split in {"punctuation", "sentences"}:
        raise RecipeError(
            f"{where}.split: the sides of pairs are not split into sentences, which would no "
            "longer belong together. Leave `split` out."
        )


def _languages(source: str, config: SourceConfig) -> dict[str, tuple[str, ...]]:
    """Code of each language or pair -> how the settings spell its languages."""
    where, found = f"sources.{source}.files", dict[str, tuple[str, ...]]()
    for name in config.files:
        spelled = _spelled(name, config.kind, where)
        code = "-".join(map(canonical, spelled))
        if code in found:
            raise RecipeError(
                f"{where}: {'-'.join(found[code])!r} and {name!r} are names of one language "
                f"({code}). List all its files under one of them."
            )
        found[code] = spelled
    return found


def _spelled(name: str, kind: Kind, where: str) -> tuple[str, ...]:
    """The one or two languages that a key of the settings names, as it spells them."""
    spelled = split_pair(name) if kind == "pairs" else (name,) if is_language(name) else None
    if spelled is None:
        wanted = "two languages joined by '-', as en-de" if kind == "pairs" else "a language, as en"
        raise RecipeError(
            f"{where}.{name}: {name!r} does not name {wanted}; use codes of BCP 47 or ISO 639, "
            "with '_' before a region (pt_BR)."
        )
    return spelled


def _local(pattern: str, base: Path, language: str) -> list[str]:
    """The files of a name that `isoglot fetch` knows, downloaded first; any other name itself.

    URLs stay: their files are read where they lie, except archives, which are fetched and unpacked.
    """
    url = as_url(pattern)
    if url is not None and is_streamed(url):
        return hub_files(url, language) if is_hub_dataset(url) else [url]
    if not is_remote(pattern) or _exists(base / pattern):
        return [pattern]
    folder = base / FETCHED
    found = resolve(pattern, folder=folder, language=language, progress=ProgressLines())
    return [str(path.absolute()) for path in found]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, a folder without permission
        return False


def expand_patterns(
    patterns: tuple[str, ...],
    base: Path,
    where: str,
    files_of: Callable[[Path], tuple[Path, ...]] = lambda path: (path,),
) -> tuple[Path, ...]:
    """The files that names and patterns match, those of a pattern sorted.

    `files_of` gives the files of a path, for formats that read folders.
    """
    files: list[Path] = []
    for pattern in patterns:
        path = base / with_home(pattern)
        refuse_kernel_files(path)
        matches: Sequence[Path]
        # a file whose own name holds a bracket is no pattern
        if (url := as_url(pattern)) is not None and not _exists(path):
            matches = find_remote(url)
        elif not glob.has_magic(pattern) or _exists(path):
            matches = [path]
        else:
            matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 (the pattern may be absolute)
            if not matches:
                raise CorpusError(
                    f"{where}: no file matches {path}. Look at the folder and the ending."
                )
            # a pattern such as text/** also matches folders
            matches = [match for match in matches if match.is_file()] or matches
        for file in (file for match in matches for file in files_of(match)):
            require_file(file)
            files.append(file)
    if not files:
        raise RecipeError(f"{where}: there are no files. Name at least one.")
    return tuple(files)
