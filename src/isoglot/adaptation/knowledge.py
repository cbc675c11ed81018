"""Knowledge for an adaptation: the tables that a user names, and what is wrong with them.

    --knowledge tables --open_knowledge--> languages in common --count_knowledge--> KnowledgeFacts

`isoglot knowledge extract` and `graph` write such tables; `knowledge_counts.py` counts what can be
used of them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from isoglot import json_text
from isoglot.corpus.knowledge.extract_tables import COUNTS, ExtractedTables
from isoglot.corpus.knowledge.store import FOLDER, MANIFEST
from isoglot.errors import CorpusError, IsoglotError
from isoglot.folders import with_home
from isoglot.languages import find, from_wikipedia

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.findings import KnowledgeFacts
    from isoglot.corpus import Corpus

_WRITE = "isoglot knowledge extract or isoglot knowledge graph writes one"


@dataclass(frozen=True, slots=True)
class KnowledgeTables:
    """The tables of the languages that a request has, too."""

    tables: ExtractedTables
    codes: dict[str, str]
    """Language of the request -> its name in the tables."""
    left_out: tuple[str, ...]
    """Languages of the tables that the request does not have."""

    @property
    def files(self) -> list[Path]:
        """Every file that is read."""
        names = self.codes.values()
        found = [file for name in names for file in self.tables.wikipedia(name, "*")]
        return sorted((*found, *self.tables.wikidata("*"), self.tables.folder / COUNTS))


def open_knowledge(config: AdaptConfig) -> KnowledgeTables | None:
    """The tables that the settings name; quick, so that mistakes are told before data are read.

    Raises:
        IsoglotError: the folder is missing, damaged or something else, or has no two languages in
            common with the request.
    """
    if config.knowledge is None:
        return None
    if find_spec("daft") is None:
        raise IsoglotError("--knowledge needs Daft: pip install 'isoglot[knowledge]'.")
    folder = with_home(config.knowledge).absolute()
    _check_folder(folder, config.knowledge)
    tables = ExtractedTables.open(folder)
    codes = {}
    for name in tables.languages:
        code = find(from_wikipedia(name), config.languages)
        if code is not None:
            codes[code] = name
    in_order = {code: codes[code] for code in config.languages if code in codes}
    _check_common(config, tables, list(in_order))
    found = KnowledgeTables(
        ExtractedTables(folder, tuple(sorted(codes.values()))),
        in_order,
        tuple(name for name in tables.languages if name not in codes.values()),
    )
    for file in found.files:
        if file.suffix == ".parquet":
            with readable(file):
                pq.read_metadata(file)
    return found


def _check_folder(folder: Path, given: str) -> None:
    """Refuse what is no folder of tables, and say what it is where that is known."""
    if not folder.exists():
        raise CorpusError(f"--knowledge {given}: there is no such folder; {_WRITE}.")
    if not folder.is_dir():
        raise CorpusError(
            f"--knowledge {given}: is a file. Name the folder of tables that isoglot knowledge "
            "extract or isoglot knowledge graph writes from such a file (--out)."
        )
    if (folder / FOLDER / MANIFEST).is_file() or (folder / MANIFEST).is_file():
        raise CorpusError(
            f"--knowledge {given}: is knowledge that was linked to a corpus, in the tokens of its "
            "tokenizer. Name the folder of tables that it was linked from."
        )
    if not (folder / COUNTS).is_file():
        begun = (folder / "wikipedia").is_dir() or (folder / "wikidata").is_dir()
        what = (
            f"its tables are not complete (no {COUNTS}). Run isoglot knowledge extract again"
            if begun
            else f"holds no tables of knowledge (no {COUNTS}); {_WRITE}"
        )
        raise CorpusError(f"--knowledge {given}: {what}.")


def _check_common(config: AdaptConfig, tables: ExtractedTables, common: Sequence[str]) -> None:
    """Entities are found in descriptions of another language: two languages are needed."""
    if len(common) >= 2:
        return
    there, asked = ", ".join(tables.languages), ", ".join(config.languages)
    shared = f"only {common[0]} in common" if common else "no language in common"
    raise CorpusError(
        f"--knowledge {config.knowledge}: has {there}, the request has {asked}: {shared}. "
        "Descriptions are found across two languages; give text of another language of it "
        "(--text LANGUAGE=FILE), or leave --knowledge out."
    )


def knowledge_sentences(facts: KnowledgeFacts) -> Iterator[str]:
    """What was found, a line for each fact."""
    counted = "; ".join(
        f"{code} {one.descriptions:,} descriptions, {one.mentions:,} mentions"
        for code, one in facts.languages.items()
    )
    yield (
        f"knowledge: {facts.entities:,} entities described in two languages or more, "
        f"{facts.facts:,} facts between them; {counted}"
    )
    if facts.left_out:
        yield (
            f"knowledge in {', '.join(facts.left_out)} is left out: the request has no text of "
            f"{'it' if len(facts.left_out) == 1 else 'them'} (--text {facts.left_out[0]}=FILE)"
        )


def knowledge_origin(folder: Path, corpus: Corpus) -> str:
    """What knowledge is from and how much there is, in a line for the model card."""
    manifest = corpus.knowledge.manifest
    facts = sum(manifest.triples.values())
    return f"{_sources(folder)}: {manifest.entities:,} entities, {facts:,} facts"


def _sources(folder: Path) -> str:
    """The graphs or dumps of tables by name; the tables' own name where they are gone."""
    try:
        told = json_text.parse((folder / COUNTS).read_bytes())
        graphs = (told.get("settings") or {}).get("graphs") or {}
        if graphs:
            return ", ".join(f"{name} ({one['format']})" for name, one in graphs.items())
        return ", ".join(sorted({Path(name).name for name in told["files"]})) or folder.name
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return folder.name


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """A file that cannot be read is named, with the remedy."""
    try:
        yield
    except (pa.ArrowException, OSError, KeyError) as error:
        what = str(error).splitlines()[0]
        raise CorpusError(
            f"{file}: cannot be read ({what}). Write the tables again with isoglot knowledge "
            "extract or isoglot knowledge graph."
        ) from error
