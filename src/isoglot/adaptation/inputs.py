"""The data that a user names: files, patterns, folders and downloads become sources.

    --text sw=raw/sw/*.txt --pairs en-sw=opus:Tatoeba
        --find_files--> files --formats.py--> DataFiles --sources_of--> sources of a PrepareConfig

Files of a pair that are parallel line by line are put together by `columns.py`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from isoglot.adaptation.columns import line_pairs
from isoglot.adaptation.formats import detect_format
from isoglot.adaptation.table_formats import FileFormat
from isoglot.corpus.cleaning.sentences import SplitMode
from isoglot.corpus.reading.files import refuse_kernel_files, require_file
from isoglot.corpus.reading.sources import SourceConfig, Subset
from isoglot.corpus.storage.shards import Kind
from isoglot.errors import CorpusError
from isoglot.fetching import is_remote, resolve
from isoglot.folders import with_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.adaptation.request import AdaptConfig

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it, and how much there is in all (none: unknown)."""
_NO_DATA = re.compile(r"\.|readme|licen[sc]e|copying|changelog|checksum|.*\.(md|html?|pdf|sha256)$")
"""Names, in lower case, of files in folders that hold no data."""
_DATASET = re.compile(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Files of one language, or of one pair of languages, that are read alike."""

    language: str
    """Its code, or that of the pair."""
    kind: Kind
    format: str
    options: dict[str, str | int | bool]
    split: SplitMode
    files: tuple[Path, ...]

    def subset(self) -> Subset:
        """As readers and cleaning know it."""
        return Subset(
            source=self.kind,
            language=self.language,
            spelled=tuple(self.language.split("-")) if self.kind == "pairs" else (self.language,),
            kind=self.kind,
            format=self.format,
            options=self.options,
            split=self.split,
            files=self.files,
        )

    @property
    def together(self) -> int:
        """How many of the files are read together."""
        return self.subset().reader().together


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All data of an adaptation."""

    data: tuple[DataFiles, ...]
    tests: tuple[Path, ...]
    """Files of test sets."""
    notes: tuple[str, ...]
    """Sentences on how files are read that a user may not expect."""

    @property
    def files(self) -> list[Path]:
        """Every file, once, sorted."""
        return sorted({*(path for one in self.data for path in one.files), *self.tests})


class NamedFiles(NamedTuple):
    """The files that the settings name, before anything in them is read."""

    text: dict[str, list[Path]]
    """By language."""
    pairs: dict[str, list[Path]]
    """By pair of languages."""
    tests: list[Path]

    @property
    def files(self) -> list[Path]:
        """Every file, once, sorted."""
        given = (*self.text.values(), *self.pairs.values(), self.tests)
        return sorted({path for files in given for path in files})


def find_files(
    config: AdaptConfig, downloads: Path, progress: Progress | None = None
) -> NamedFiles:
    """The files of all data that the settings name; what is remote is fetched once.

    Args:
        config: the settings.
        downloads: folder for what is fetched from elsewhere.
        progress: told of downloads.

    Raises:
        IsoglotError: a file is missing.
    """
    find = _Finder(downloads, progress)
    return NamedFiles(
        text={
            language: find.all_files(names, language, f"--text {language}")
            for language, names in config.text.items()
        },
        pairs={
            pair: find.all_files(names, pair, f"--pairs {pair}")
            for pair, names in config.pairs.items()
        },
        tests=find.all_files(config.tests, None, "--test") if config.tests else [],
    )


def find_inputs(config: AdaptConfig, downloads: Path, progress: Progress | None = None) -> Inputs:
    """The files of all data that the settings name, and how they are read.

    Args:
        config: the settings.
        downloads: folder for what is fetched from elsewhere.
        progress: told of downloads.

    Raises:
        IsoglotError: a file is missing, or cannot be read.
    """
    given = find_files(config, downloads, progress)
    data: list[DataFiles] = []
    notes: list[str] = []
    for language, files in given.text.items():
        formats = [(path, detect_format(path, (language,))) for path in files]
        data += _grouped(language, "text", (((path,), one) for path, one in formats))
    for pair, files in given.pairs.items():
        sides = tuple(pair.split("-"))
        formats = [(path, detect_format(path, sides)) for path in files]
        notes += [one.note for _, one in formats if one.note]
        whole = [((path,), one) for path, one in formats if not one.single]
        lines = FileFormat("moses", {})
        couples = line_pairs([path for path, one in formats if one.single], pair)
        data += _grouped(pair, "pairs", [*whole, *((couple, lines) for couple in couples)])
    _check_apart(data, given.tests)
    return Inputs(data=tuple(data), tests=tuple(given.tests), notes=tuple(notes))


def find_dictionaries(config: AdaptConfig, downloads: Path) -> tuple[Path, ...]:
    """The files of bilingual dictionaries that the settings name, once read from end to end.

    Raises:
        IsoglotError: a file is missing, or is no dictionary.
    """
    from isoglot.models.transplant.dictionary import read_dictionaries

    if not config.dictionaries:
        return ()
    files = _Finder(downloads, None).all_files(config.dictionaries, None, "--dictionary")
    read_dictionaries(files)
    return tuple(files)


class _Finder:
    """Names to files; what is remote is fetched."""

    def __init__(self, downloads: Path, progress: Progress | None) -> None:
        self._downloads = downloads
        self._progress = progress or (lambda _stage, _done, _total: None)

    def all_files(self, names: Sequence[str], language: str | None, where: str) -> list[Path]:
        """The files of all names, each once, as absolute paths."""
        found = (path for name in names for path in self._files(name, language, where))
        files = [Path(path).absolute() for path in dict.fromkeys(found)]
        if not files:
            raise CorpusError(f"{where}: there are no files. Name at least one.")
        return files

    def _files(self, name: str, language: str | None, where: str) -> Iterator[Path]:
        if is_remote(name) or _is_dataset(name):
            named = name if is_remote(name) else f"hf:{name}"
            matches = resolve(
                named, folder=self._downloads, language=language, progress=self._progress
            )
        else:
            matches = _local(name, where)
        for match in matches:
            if match.is_dir():
                yield from (path for path in _files_in(match, where) if self._is_given(path, name))
            elif self._is_given(match, name):
                require_file(match)
                yield match

    def _is_given(self, path: Path, name: str) -> bool:
        """Whether a file is the user's: not one of OUT that a folder or pattern around it finds."""
        own = self._downloads.parent.absolute()
        given = path.absolute()
        within = Path(name).absolute().is_relative_to(own)
        return (
            within
            or given.is_relative_to(self._downloads.absolute())
            or not (given.is_relative_to(own))
        )


def _is_dataset(name: str) -> bool:
    """Whether a name can only be that of a dataset on the hub: OWNER/NAME, and no such folder."""
    owner = Path(name).parent
    return _DATASET.fullmatch(name) is not None and not owner.exists()


def _local(name: str, where: str) -> list[Path]:
    """The files and folders that a path or a pattern names."""
    if not name.strip():
        raise CorpusError(f"{where}: a name is empty. Write --text sw=FILE or --text sw=FILE,FILE.")
    path = with_home(name)
    refuse_kernel_files(path)
    if not glob.has_magic(name) or path.exists():
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 (the pattern may be absolute)
    if not matches:
        raise CorpusError(f"{where}: no file matches {name}. Look at the folder and the ending.")
    return [match for match in matches if match.is_file()] or matches


def _files_in(folder: Path, where: str) -> list[Path]:
    """The data files anywhere in a folder; of a saved dataset, its part `train`."""
    if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
        from isoglot.corpus.reading.parquet import DatasetsReader

        return list(DatasetsReader().files_of(folder))
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not _NO_DATA.match(path.name.lower())
    ]
    if not found:
        raise CorpusError(f"{where}: the folder {folder} holds no data files. Name another one.")
    return found


def _grouped(
    language: str, kind: Kind, found: Iterable[tuple[tuple[Path, ...], FileFormat]]
) -> list[DataFiles]:
    """Files of one format and options together, in the order in which they come."""
    groups: dict[str, tuple[FileFormat, list[Path]]] = {}
    for paths, one in found:
        key = repr((one.format, sorted(one.options.items()), one.split))
        groups.setdefault(key, (one, []))[1].extend(paths)
    return [
        DataFiles(
            language=language,
            kind=kind,
            format=one.format,
            options=one.options,
            split=one.split,
            files=tuple(paths),
        )
        for one, paths in groups.values()
    ]


def _check_apart(data: Sequence[DataFiles], tests: Sequence[Path]) -> None:
    """Refuse a file that is given twice, for two languages or as a test."""
    owners: dict[Path, str] = dict.fromkeys(tests, "--test")
    for one in data:
        for path in one.files:
            owner = owners.setdefault(path, one.language)
            if owner != one.language:
                raise CorpusError(
                    f"{path}: is given for {owner} and for {one.language}. Name it once."
                )


def sources_of(data: Sequence[DataFiles]) -> dict[str, SourceConfig]:
    """Sources of a prepare file: files that are read alike share one."""
    groups: dict[str, tuple[DataFiles, dict[str, tuple[str, ...]]]] = {}
    for one in data:
        key = repr((one.kind, one.format, sorted(one.options.items()), one.split))
        groups.setdefault(key, (one, {}))[1][one.language] = tuple(map(str, one.files))
    names: dict[str, int] = {}
    sources = {}
    for one, files in groups.values():
        base = one.kind if one.format in ("lines", "tsv") else f"{one.kind}-{one.format}"
        names[base] = names.get(base, 0) + 1
        name = base if names[base] == 1 else f"{base}-{names[base]}"
        sources[name] = SourceConfig(
            kind=one.kind, format=one.format, options=one.options, split=one.split, files=files
        )
    return sources
