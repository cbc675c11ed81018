"""Plans an extraction: dump files are split into slices, one task each, with its output files.

The digest of a task covers everything that decides its output, so that a resumed extraction skips
it unless the file or a relevant setting has changed.
"""

from __future__ import annotations

import glob
import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.knowledge.dump_files import FileSlice, split_file
from isoglot.corpus.knowledge.extract_tables import WORK
from isoglot.corpus.knowledge.markup.localized import WIKIPEDIAS
from isoglot.corpus.knowledge.mediawiki import Site, read_site
from isoglot.corpus.knowledge.wikidata import TABLES, EntitiesTask, extract_entities
from isoglot.corpus.knowledge.wikipedia import PagesTask, extract_pages
from isoglot.corpus.reading.files import refuse_kernel_files, require_file
from isoglot.errors import CorpusError, RecipeError, nearest
from isoglot.folders import with_home
from isoglot.languages import from_wikipedia, wikipedia_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMAT = 4
"""Raised when the same dumps would give other tables or counts."""
_EDGE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTask:
    """The extraction of one slice of one dump file."""

    name: str
    """Such as `en-00003`."""
    file: str
    """The dump file, as the settings name it."""
    language: str | None
    """The language of a Wikipedia's dump; None for Wikidata."""
    task: PagesTask | EntitiesTask
    size: int
    """Bytes of the file on disk ÷ number of its slices."""
    digest: str

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The tables it writes."""
        if isinstance(self.task, PagesTask):
            return self.task.pages, self.task.sentences
        return tuple(self.task.tables.values())


def run_slice(task: SliceTask) -> dict[str, Any]:
    """Extracts one slice; gives its counts."""
    inner = task.task
    counts = extract_pages(inner) if isinstance(inner, PagesTask) else extract_entities(inner)
    counts["faults"] = [_locate(inner.part, fault) for fault in counts["faults"]]
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Splits dump files into tasks that write into one folder."""

    output: Path
    base: Path
    slice_bytes: int
    threads: int
    """Cores that search for the blocks of a file with one stream."""

    def wikipedia(self, language: str, patterns: Sequence[str], *, check: bool) -> list[SliceTask]:
        """The tasks of one language's dumps."""
        folder, tasks = self.output / "wikipedia" / language, list[SliceTask]()
        sites: dict[Path, Site] = {}
        for path in self._files(patterns):
            sites[path] = read_site(path, language)
            _check_site(path, sites[path], check=check)
        for number, part, size in self._slices(list(sites)):
            site = sites[part.path]
            task = PagesTask(
                part=part,
                site=site,
                pages=folder / f"pages-{number}.parquet",
                sentences=folder / f"sentences-{number}.parquet",
                text=self.output / WORK / "text" / language / f"{number}.txt.gz",
            )
            tasks.append(self._task(f"{language}-{number}", task, size, language, [asdict(site)]))
        return tasks

    def wikidata(
        self, patterns: Sequence[str], languages: tuple[str, ...], *, keep_all_items: bool
    ) -> list[SliceTask]:
        """The tasks of Wikidata's dumps."""
        folder, tasks = self.output / "wikidata", list[SliceTask]()
        for number, part, size in self._slices(self._files(patterns)):
            task = EntitiesTask(
                part=part,
                languages=languages,
                keep_all_items=keep_all_items,
                tables={table: folder / f"{table}-{number}.parquet" for table in TABLES},
            )
            settings = [languages, keep_all_items]
            tasks.append(self._task(f"wikidata-{number}", task, size, None, settings))
        return tasks

    def _slices(self, files: Sequence[Path]) -> Iterator[tuple[str, FileSlice, int]]:
        """The slices of some files: number (`00003`), slice, bytes on disk."""
        number = 0
        for path in files:
            index = self.output / WORK / f"{digest_of(_identity(FileSlice(path=path)))}.index"
            parts = split_file(path, self.slice_bytes, index, threads=self.threads)
            for part in parts:
                yield f"{number:05d}", part, path.stat().st_size // len(parts)
                number += 1

    def _task(
        self,
        name: str,
        task: PagesTask | EntitiesTask,
        size: int,
        language: str | None,
        settings: list[Any],
    ) -> SliceTask:
        path = task.part.path
        file = path.relative_to(self.base) if path.is_relative_to(self.base) else path
        digest = digest_of([FORMAT, *_identity(task.part), *settings])
        return SliceTask(
            name=name, file=file.as_posix(), language=language, task=task, size=size, digest=digest
        )

    def _files(self, patterns: Sequence[str]) -> list[Path]:
        """The files of some patterns."""
        files: list[Path] = []
        for pattern in patterns:
            path = self.base / with_home(pattern)
            refuse_kernel_files(path)
            found = sorted(Path(name) for name in glob.glob(str(path)))  # noqa: PTH207 (absolute)
            for file in found or [path]:
                require_file(file)
            files += [file for file in found if file not in files]
        return files


def _check_site(path: Path, site: Site, *, check: bool) -> None:
    """Refuses a dump of another wiki, and a language unknown to both our list and the dump."""
    language, expected = site.language, wikipedia_database(site.language)
    if site.name == expected:
        return
    if not has_wikipedia(language):
        raise RecipeError(
            f"{path}: {language!r} is not a language with a Wikipedia, and the dump's header does "
            f"not name {expected}; {nearest(language, WIKIPEDIAS)}"
        )
    if check and site.name:
        raise CorpusError(
            f"{path}: its header says it is a dump of {site.name}, and it is named as one "
            f"of {language} ({expected}). Name it under its own language, or set "
            "check_site: false."
        )


def has_wikipedia(language: str) -> bool:
    """Whether there is a Wikipedia in a language."""
    return language in set(map(from_wikipedia, WIKIPEDIAS))


def digest_of(content: Any) -> str:
    """A short hash of JSON content."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _identity(part: FileSlice) -> list[int | str]:
    """The place of a slice and a hash of its first and last 64 KiB.

    A file that was cut short and fetched again has the same slices up to where it was cut.
    """
    size = part.path.stat().st_size
    start, end = part.start, size if part.end is None else part.end
    first, last = (0, size) if part.index else (start, end)
    with part.path.open("rb") as file:
        file.seek(first)
        content = sha256(file.read(min(_EDGE_BYTES, last - first)))
        file.seek(max(last - _EDGE_BYTES, first))
        content.update(file.read(min(_EDGE_BYTES, last - first)))
    return [start, end, content.hexdigest()]


def _locate(part: FileSlice, fault: dict[str, Any]) -> dict[str, Any]:
    """A fault with its place in the decompressed file, or in its streams from a byte on disk."""
    offset, message = fault["offset"], fault["fault"]
    if part.start == 0 or part.index is not None or part.path.suffix != ".bz2":
        return {"byte": part.start + offset, "fault": message}
    return {"byte": offset, "of the streams from byte": part.start, "fault": message}
