"""A sample of large tables of knowledge, for the trial of a planned recipe.

Linking all of Wikipedia takes hours. The pages of some entities, the sentences on them and the
facts between them suffice to time steps; small tables are taken as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isoglot.corpus.knowledge.extract_tables import COUNTS, ExtractedTables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.adaptation.findings import KnowledgeFacts

MAX_PAGES = 20_000
"""Tables with more pages are sampled."""


def is_large(facts: KnowledgeFacts) -> bool:
    """Whether a sample stands for the tables."""
    return sum(one.descriptions for one in facts.languages.values()) > MAX_PAGES


def sample_tables(facts: KnowledgeFacts, out: Path) -> Path:
    """Write the tables of the sampled entities to a folder; gives the folder.

    Small tables are not copied: their own folder is given.
    """
    folder = Path(facts.folder)
    if not is_large(facts):
        return folder
    names = tuple(sorted(one.name for one in facts.languages.values()))
    tables = ExtractedTables(folder, names)
    items = pa.array(facts.sample, pa.int64())
    sitelinks = _rows(tables.wikidata("sitelinks"), pc.field("item").isin(items))
    wikidata = {
        "sitelinks": sitelinks,
        "items": _rows(tables.wikidata("items"), pc.field("item").isin(items)),
        "claims": _rows(
            tables.wikidata("claims"),
            pc.field("subject").isin(items) & pc.field("object").isin(items),
        ),
    }
    if tables.has_properties():
        wikidata["properties"] = _rows(tables.wikidata("properties"), None)
    for name, table in wikidata.items():
        _write(table, out / "wikidata" / f"{name}-00000.parquet")
    for name in names:
        titles = sitelinks.filter(pc.equal(sitelinks["language"], name))["title"]
        chosen = pc.field("title").isin(titles.combine_chunks())
        pages = _rows(tables.wikipedia(name, "pages"), chosen)
        own = pc.field("page").isin(pages["page"].combine_chunks())
        sentences = _rows(tables.wikipedia(name, "sentences"), own)
        _write(pages, out / "wikipedia" / name / "pages-00000.parquet")
        _write(sentences, out / "wikipedia" / name / "sentences-00000.parquet")
    shutil.copyfile(folder / COUNTS, out / COUNTS)
    return out


def _rows(files: Sequence[Path], chosen: pc.Expression | None) -> pa.Table:
    """The rows of shards that an expression chooses; none: all."""
    return pa.concat_tables(
        pq.read_table(file, filters=chosen, partitioning=None) for file in files
    )


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
