"""The data that a user names: files, patterns, folders and downloads become sources.

    --text sw=raw/sw/*.txt --pairs en-sw=opus:Tatoeba
        --names--> files --formats--> DataFiles --sources_of--> sources of a PrepareConfig

Two files that are parallel line by line (`a.en,a.sw`) are found by the language in their names, or
taken two by two in the order in which they are given.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.columns import are_swapped
from isoglot.adaptation.formats import FileFormat, detect_format
from isoglot.corpus.cleaning.sentences import SplitMode
from isoglot.corpus.reading.files import read_lines, refuse_kernel_files, require_file
from isoglot.corpus.reading.sources import SourceConfig, Subset
from isoglot.corpus.storage.shards import Kind
from isoglot.errors import CorpusError
from isoglot.fetching import is_remote, resolve
from isoglot.folders import with_home
from isoglot.languages import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isoglot.adaptation.config import AdaptConfig

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it, and how much there is in all (none: unknown)."""

_NO_DATA = re.compile(r"\.|readme|licen[sc]e|copying|changelog|checksum|.*\.(md|html?|pdf|sha256)$")
"""Names, in lower case, of files in folders that hold no data."""
_DATASET = re.compile(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w-]*")
_SWAP_LINES = 200


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


def find_inputs(config: AdaptConfig, downloads: Path, progress: Progress | None = None) -> Inputs:
    """The files of all data that the settings name, and how they are read.

    Args:
        config: the settings.
        downloads: folder for what is fetched from elsewhere.
        progress: told of downloads.

    Raises:
        IsoglotError: a file is missing, or cannot be read.
    """
    find = _Finder(downloads, progress)
    data: list[DataFiles] = []
    notes: list[str] = []
    for language, names in config.text.items():
        files = find.all_files(names, language, f"--text {language}")
        formats = [(path, detect_format(path, (language,))) for path in files]
        data += _grouped(language, "text", (((path,), one) for path, one in formats))
    for pair, names in config.pairs.items():
        sides = tuple(pair.split("-"))
        files = find.all_files(names, pair, f"--pairs {pair}")
        formats = [(path, detect_format(path, sides)) for path in files]
        notes += [one.note for _, one in formats if one.note]
        whole = [((path,), one) for path, one in formats if not one.single]
        lines = FileFormat("moses", {})
        couples = _line_pairs([path for path, one in formats if one.single], pair)
        data += _grouped(pair, "pairs", [*whole, *((couple, lines) for couple in couples)])
    tests = find.all_files(config.tests, None, "--test") if config.tests else []
    _check_apart(data, tests)
    return Inputs(data=tuple(data), tests=tuple(tests), notes=tuple(notes))


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


def _line_pairs(files: Sequence[Path], pair: str) -> list[tuple[Path, Path]]:
    """Files of one column two by two: by the language in their names, or by their order."""
    first, second = pair.split("-")
    sides = [_side(path, (first, second)) for path in files]
    if files and all(side is not None for side in sides):
        by_stem: dict[str, dict[str, Path]] = {}
        for path, side in zip(files, sides, strict=True):
            assert side is not None
            by_stem.setdefault(side[1], {})[side[0]] = path
        alone = [path for both in by_stem.values() if len(both) == 1 for path in both.values()]
        if not alone:
            return [(both[first], both[second]) for both in by_stem.values()]
        if len(files) != 2:
            raise CorpusError(_alone(alone[0], pair))
    if len(files) % 2:
        raise CorpusError(_alone(files[-1], pair))
    couples = list(zip(files[::2], files[1::2], strict=True))
    return [_in_order(couple, pair) for couple in couples]


def _alone(path: Path, pair: str) -> str:
    first, second = pair.split("-")
    return (
        f"{path}: has one column, and {pair} needs the text of both languages. Give a file with a "
        f"tab between {first} and {second}, or two files that are parallel line by line: "
        f"--pairs {pair}=FILE.{first},FILE.{second}."
    )


def _side(path: Path, languages: tuple[str, str]) -> tuple[str, str] | None:
    """The language in a file's name (the last of the two), and the rest of its path."""
    for match in reversed(list(re.finditer(r"[A-Za-z_]+", path.name))):
        code = canonical(match[0])
        if code in languages:
            return code, f"{path.parent}/{path.name[: match.start()]}|{path.name[match.end() :]}"
    # `en/a.txt` and `sw/a.txt`
    code = canonical(path.parent.name)
    return (code, f"{path.parent.parent}/|/{path.name}") if code in languages else None


def _in_order(couple: tuple[Path, Path], pair: str) -> tuple[Path, Path]:
    """Two files in the order of the pair's languages, where identification is sure of it."""
    texts = []
    for path in couple:
        lines = (line for line in read_lines(path) if isinstance(line, str) and line.strip())
        texts.append([line for _, line in zip(range(_SWAP_LINES), lines, strict=False)])
    swapped = are_swapped(texts[0], texts[1], pair.split("-"))
    return (couple[1], couple[0]) if swapped else couple


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


def parse_named(values: Sequence[str], option: str) -> dict[str, tuple[str, ...]]:
    """The values of --text or --pairs: `sw=FILE`, `sw=FILE,FILE`, in the order given.

    A comma in a name that exists as it is, or in a URL, does not divide it.
    """
    found: dict[str, tuple[str, ...]] = {}
    example = "en-sw=FILE" if option == "--pairs" else "sw=FILE"
    for value in values:
        language, equals, names = value.partition("=")
        if not equals or not language.strip() or not names.strip():
            raise CorpusError(
                f"{option} {value}: names no language. Write {option} {example}, the code of the "
                "language before an equals sign."
            )
        whole = "://" in names or Path(names).exists()
        listed = (names,) if whole else tuple(name for name in names.split(",") if name.strip())
        found[language.strip()] = (*found.get(language.strip(), ()), *map(str.strip, listed))
    return found


def unquoted(extra: Sequence[str], given: Mapping[str, tuple[str, ...]]) -> str:
    """The sentence about files that follow an option: a shell has expanded a pattern."""
    code, names = next(iter(given.items()), ("sw", ("raw/sw/*.txt",)))
    example = str(Path(names[0]).with_name(f"*{Path(names[0]).suffix}"))
    return (
        f"{extra[0]}{f' and {len(extra) - 1:,} more' if len(extra) > 1 else ''}: stands where no "
        "file is expected. If the shell expanded a pattern, put it in quotes, such as "
        f"--text '{code}={example}', or name the folder."
    )
