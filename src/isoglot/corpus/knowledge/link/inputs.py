"""The tables that `isoglot knowledge extract` wrote: which there are, and whether all are."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.knowledge.extract import COUNTS
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

_AGAIN = "Run isoglot knowledge extract."


@dataclass(frozen=True, slots=True)
class Tables:
    """A folder of Parquet shards, `NAME-00000.parquet`, and the languages wanted from it."""

    folder: Path
    languages: tuple[str, ...]

    @classmethod
    def open(cls, folder: Path, wanted: Sequence[str] = ()) -> Tables:
        """Opens the tables of the wanted languages, by default of all.

        Raises:
            CorpusError: a table is missing, a language unknown, or extracting was interrupted.
        """
        if not (folder / COUNTS).is_file():
            raise CorpusError(
                f"{folder}: holds no tables of dumps, or extracting them was interrupted: it has "
                f"no {COUNTS}. {_AGAIN}"
            )
        found = sorted(path.name for path in (folder / "wikipedia").glob("*") if path.is_dir())
        for language in wanted:
            if language not in found:
                hint = nearest(language, found) if found else "it has none at all."
                raise CorpusError(f"{folder}: has no Wikipedia in {language!r}; {hint}")
        tables = cls(folder, tuple(sorted(set(wanted or found))))
        if not tables.languages:
            raise CorpusError(
                f"{folder}: has no Wikipedia in any language. Name some dumps and extract them."
            )
        if not any((folder / "wikidata").glob("*.parquet")):
            raise CorpusError(
                f"{folder}: was extracted without Wikidata, which says what each page is about. "
                "Name a dump (`wikidata: [latest-all.json.bz2]`) and extract again: the "
                "Wikipedias' tables are kept."
            )
        for name in ("sitelinks", "claims", "items"):
            tables.wikidata(name)
        for language in tables.languages:
            tables.wikipedia(language, "pages")
            tables.wikipedia(language, "sentences")
        return tables

    def wikipedia(self, language: str, table: str) -> list[Path]:
        """The shards of `pages` or `sentences` of a language."""
        return self._shards(self.folder / "wikipedia" / language, table)

    def wikidata(self, table: str) -> list[Path]:
        """The shards of `items`, `sitelinks`, `claims` or `properties`."""
        return self._shards(self.folder / "wikidata", table)

    def has_properties(self) -> bool:
        """Are there names of relations?"""
        return any((self.folder / "wikidata").glob("properties-*.parquet"))

    def digest(self) -> str:
        """Another for other files; contents are not read, which would take as long as linking."""
        files = [file for language in self.languages for file in self.wikipedia(language, "*")]
        states = [(file, file.stat()) for file in (*files, *self.wikidata("*"))]
        lines = (
            f"{file.relative_to(self.folder).as_posix()} {state.st_size} {state.st_mtime_ns}"
            for file, state in states
        )
        return sha256("\n".join(lines).encode()).hexdigest()

    def _shards(self, folder: Path, table: str) -> list[Path]:
        shards = sorted(folder.glob(f"{table}-*.parquet"))
        if not shards:
            raise CorpusError(f"{folder}: has no {table}-*.parquet. {_AGAIN}")
        return shards


def number_of(shard: Path) -> int:
    """7 for `pages-00007.parquet`."""
    return int(shard.stem.rpartition("-")[2])
