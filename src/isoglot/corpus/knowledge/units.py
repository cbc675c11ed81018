"""The units of work of an extraction: each dump file cut into parts, each part with its outputs.

A unit writes a mark when it is done, with a digest of all that decides its output: another run
skips it, unless the file or a setting that matters has changed.
"""

from __future__ import annotations

import glob
import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.disk import write_atomically
from isoglot.corpus.knowledge.dumps.parts import cut
from isoglot.corpus.knowledge.dumps.site import Site, read_site
from isoglot.corpus.knowledge.dumps.unpack import Part
from isoglot.corpus.knowledge.markup.words import WIKIPEDIAS
from isoglot.corpus.knowledge.wikidata import (
    TABLES,
    EntitiesTask,
    database_of,
    extract_entities,
)
from isoglot.corpus.knowledge.wikipedia import PagesTask, extract_pages
from isoglot.corpus.readers.files import require
from isoglot.errors import CorpusError, RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 2
"""Raised when the same dumps would give other tables."""
WORK = ".work"
"""Folder of marks, indexes and other things that serve the work only."""
_EDGE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One part of one dump file."""

    file: str
    """The dump file, as the settings name it."""
    language: str | None
    """The language of a Wikipedia's dump; None for Wikidata."""
    task: PagesTask | EntitiesTask
    size: int
    """Bytes of the file on disk, shared out evenly among its parts."""
    mark: Path
    digest: str

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The tables it writes."""
        if isinstance(self.task, PagesTask):
            return self.task.pages, self.task.sentences
        return tuple(self.task.tables.values())

    def finished(self) -> dict[str, Any] | None:
        """What it counted, if it was run before and nothing has changed since."""
        try:
            mark = json.loads(self.mark.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if mark.get("digest") != self.digest or not all(path.exists() for path in self.outputs):
            return None
        counts: dict[str, Any] = mark["counts"]
        return counts


def run_unit(unit: Unit) -> dict[str, Any]:
    """Does the work of one unit and marks it as done; gives its counts."""
    task = unit.task
    counts = extract_pages(task) if isinstance(task, PagesTask) else extract_entities(task)
    counts["faults"] = [_place(task.part, fault) for fault in counts["faults"]]
    write_atomically(
        unit.mark, json.dumps({"digest": unit.digest, "counts": counts}, indent=1).encode()
    )
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Cuts dump files into units that write into one folder."""

    output: Path
    base: Path
    part_bytes: int
    threads: int
    """How many cores may look for the parts of a file that is one stream."""

    def wikipedia(self, language: str, patterns: Sequence[str], *, check: bool) -> list[Unit]:
        """The units of one language's dumps."""
        folder, units = self.output / "wikipedia" / language, list[Unit]()
        for path in self._files(patterns):
            site = read_site(path, language)
            _check_site(path, site, check=check)
            parts = self._cut(path)
            for part in parts:
                name = f"{len(units):05d}"
                task = PagesTask(
                    part=part,
                    site=site,
                    pages=folder / f"pages-{name}.parquet",
                    sentences=folder / f"sentences-{name}.parquet",
                    text=self.output / WORK / "text" / language / f"{name}.txt.gz",
                )
                deciding = [*_identity(part), asdict(site)]
                units.append(self._unit(path, task, len(parts), f"{language}-{name}", deciding))
        return units

    def wikidata(
        self, patterns: Sequence[str], languages: tuple[str, ...], *, every_item: bool
    ) -> list[Unit]:
        """The units of Wikidata's dumps."""
        units = list[Unit]()
        for path in self._files(patterns):
            parts = self._cut(path)
            for part in parts:
                name = f"{len(units):05d}"
                task = EntitiesTask(
                    part=part,
                    languages=languages,
                    every_item=every_item,
                    tables={
                        table: self.output / "wikidata" / f"{table}-{name}.parquet"
                        for table in TABLES
                    },
                )
                deciding = [*_identity(part), languages, every_item]
                units.append(self._unit(path, task, len(parts), f"wikidata-{name}", deciding))
        return units

    def _unit(
        self,
        path: Path,
        task: PagesTask | EntitiesTask,
        parts: int,
        name: str,
        deciding: list[Any],
    ) -> Unit:
        return Unit(
            file=(
                path.relative_to(self.base) if path.is_relative_to(self.base) else path
            ).as_posix(),
            language=task.site.language if isinstance(task, PagesTask) else None,
            task=task,
            size=path.stat().st_size // parts,
            mark=self.output / WORK / f"{name}.json",
            digest=digest_of([FORMAT, *deciding]),
        )

    def _cut(self, path: Path) -> list[Part]:
        """The parts of a file."""
        index = self.output / WORK / f"{digest_of(_identity(Part(path=path)))}.index"
        return cut(path, self.part_bytes, index, threads=self.threads)

    def _files(self, patterns: Sequence[str]) -> list[Path]:
        """The files that some patterns name."""
        files: list[Path] = []
        for pattern in patterns:
            path = self.base / Path(pattern).expanduser()
            found = sorted(Path(name) for name in glob.glob(str(path)))  # noqa: PTH207 (absolute)
            if not found:
                require(path)
            for file in found:
                require(file)
            files += [file for file in found if file not in files]
        return files


def _check_site(path: Path, site: Site, *, check: bool) -> None:
    """Refuses a dump of another wiki, and a language that neither our list nor the dump knows."""
    language, expected = site.language, database_of(site.language)
    if site.name == expected:
        return
    if language not in WIKIPEDIAS:
        raise RecipeError(
            f"{path}: {language!r} is no language with a Wikipedia, and the dump's header does "
            f"not name {expected}; {nearest(language, WIKIPEDIAS)}"
        )
    if check and site.name:
        raise CorpusError(
            f"{path}: its header says it is a dump of {site.name}, and it is named as one "
            f"of {language} ({expected}). Name it under its own language, or set "
            "check_site: false."
        )


def digest_of(content: Any) -> str:
    """A short digest of settings and the like."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _identity(part: Part) -> list[int | str]:
    """Tells a part from another without reading all of it: its place, its start and its end.

    A file that was cut short and fetched again has the same parts up to where it was cut.
    """
    size = part.path.stat().st_size
    start, end = part.start, size if part.end is None else part.end
    first, last = (0, size) if part.index else (start, end)
    with part.path.open("rb") as file:
        file.seek(first)
        content = sha256(file.read(min(_EDGE, last - first)))
        file.seek(max(last - _EDGE, first))
        content.update(file.read(min(_EDGE, last - first)))
    return [start, end, content.hexdigest()]


def _place(part: Part, fault: dict[str, Any]) -> dict[str, Any]:
    """A fault with its place in the file: the byte of the unpacked content, if that is known."""
    known = part.start == 0 or part.index is not None or part.path.suffix != ".bz2"
    if known:
        return {"byte": part.start + fault["offset"], "fault": fault["fault"]}
    return {
        "byte": fault["offset"],
        "of the streams from byte": part.start,
        "fault": fault["fault"],
    }
