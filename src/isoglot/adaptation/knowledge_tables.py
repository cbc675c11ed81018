"""Knowledge for an adaptation: the tables that a user names, checked and counted.

    --knowledge tables --open_knowledge--> languages in common --count_knowledge--> KnowledgeFacts

`isoglot knowledge extract` and `graph` write such tables, which are joined when the corpus is
prepared. For counting, columns of titles and numbers are enough: redirects are not followed, so
links through them are not counted.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isoglot import json_text
from isoglot.adaptation.findings import KnowledgeFacts, KnowledgeLanguage
from isoglot.corpus.knowledge.extract_tables import COUNTS, ExtractedTables
from isoglot.corpus.knowledge.store import FOLDER, MANIFEST
from isoglot.errors import CorpusError, IsoglotError
from isoglot.folders import with_home
from isoglot.languages import find, from_wikipedia

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.adaptation.request import AdaptConfig
    from isoglot.models.transplant.tokens import TokenizerTokens
    from isoglot.types import BoolArray, LongArray

_WRITE = "isoglot knowledge extract or isoglot knowledge graph writes one"
MIN_USABLE = 100
"""Mentions, or facts, from which on they are trained on."""
_HELDOUT_MENTIONS = 2000
"""Held-out mentions of the smallest language that are wanted."""
_HELDOUT_SHARES = (0.002, 0.05)
"""Least and greatest share of the pages and facts that are held out."""
_SAMPLED_PAGES = 300
"""Pages of a language whose tokens are counted."""
_SAMPLED_ITEMS = 1000
"""Entities whose pages stand for large tables in a trial."""


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


def count_knowledge(given: KnowledgeTables, tokens: TokenizerTokens) -> KnowledgeFacts:
    """Count what can be used of the tables, and its tokens on a sample.

    Raises:
        CorpusError: a file is damaged, or there are too few mentions and facts.
    """
    titles = {code: _described(given.tables, name) for code, name in given.codes.items()}
    items = {code: np.unique(table["item"].to_numpy()) for code, table in titles.items()}
    known = [np.zeros(0, np.int64), *items.values()]
    every, number = np.unique(np.concatenate(known), return_counts=True)
    twice = every[number > 1]
    languages = {}
    for code, name in given.codes.items():
        targets = titles[code].filter(pa.array(_are_in(titles[code]["item"].to_numpy(), twice)))
        languages[code] = KnowledgeLanguage(
            name=name,
            descriptions=len(items[code]),
            mentions=_count_links(given.tables.wikipedia(name, "sentences"), targets["title"]),
            characters=_characters(given.tables, name),
            description_tokens=_description_tokens(given.tables, name, tokens),
        )
    facts, sample = _count_facts(given.tables, twice)
    _check_usable(given, languages, len(twice), facts)
    share, seed = _heldout_share(given.tables, languages)
    return KnowledgeFacts(
        folder=str(given.tables.folder),
        languages=languages,
        left_out=given.left_out,
        entities=len(twice),
        facts=facts,
        heldout_share=share,
        heldout_seed=seed,
        sample=sample,
    )


def _check_usable(
    given: KnowledgeTables, languages: dict[str, KnowledgeLanguage], entities: int, facts: int
) -> None:
    mentions = sum(one.mentions for one in languages.values())
    if max(mentions, facts) < MIN_USABLE:
        codes = ", ".join(languages)
        raise CorpusError(
            f"--knowledge {given.tables.folder}: entities described in two of the languages "
            f"{codes}: {entities:,}, with {mentions:,} mentions and {facts:,} facts; needed are "
            f"{MIN_USABLE} mentions or facts. Write its tables from more pages or facts, or leave "
            "--knowledge out."
        )


def _described(tables: ExtractedTables, language: str) -> pa.Table:
    """The articles of a language that belong to an item: title, item."""
    pages = _read_columns(tables.wikipedia(language, "pages"), ["title", "kind"])
    titles = pages.filter(pc.equal(pages["kind"], "article"))["title"]
    links = _read_columns(
        tables.wikidata("sitelinks"), ["item", "language", "title"], language=language
    )
    place = pc.index_in(titles, value_set=links["title"].combine_chunks())
    found = pc.is_valid(place)
    return pa.table(
        {
            "title": titles.filter(found),
            "item": links["item"].take(place.filter(found)).cast(pa.int64()),
        }
    )


def _read_columns(
    files: Sequence[Path], columns: list[str], *, language: str | None = None
) -> pa.Table:
    """Some columns of shards; of `language`, only its rows."""
    tables = []
    for file in files:
        with readable(file):
            chosen = None if language is None else [("language", "=", language)]
            tables.append(pq.read_table(file, columns=columns, filters=chosen, partitioning=None))
    return pa.concat_tables(tables)


def _count_links(files: Sequence[Path], targets: pa.ChunkedArray) -> int:
    """Links of sentences to some titles."""
    known = targets.combine_chunks()
    total = 0
    for file in files:
        with readable(file):
            for batch in pq.ParquetFile(file).iter_batches(columns=["links"]):
                links = pc.list_flatten(batch["links"])
                found = pc.is_in(pc.struct_field(links, "target"), value_set=known)
                total += pc.sum(found).as_py() or 0
    return total


def _count_facts(tables: ExtractedTables, items: LongArray) -> tuple[int, tuple[int, ...]]:
    """Claims between two of these items; and some of the items, those of claims first."""
    total = 0
    sample: dict[int, None] = {}
    for file in tables.wikidata("claims"):
        with readable(file):
            for batch in pq.ParquetFile(file).iter_batches(columns=["subject", "object"]):
                ends = np.stack([batch[name].to_numpy() for name in ("subject", "object")])
                both = _are_in(ends[0], items) & _are_in(ends[1], items) & (ends[0] != ends[1])
                total += int(both.sum())
                wanted = max(0, _SAMPLED_ITEMS - len(sample))
                sample.update(dict.fromkeys(ends[:, both][:, :wanted].ravel().tolist()))
    step = max(1, len(items) // _SAMPLED_ITEMS)
    sample.update(dict.fromkeys(items[::step].tolist()))
    return total, tuple(sorted(list(sample)[: 2 * _SAMPLED_ITEMS]))


def _are_in(values: LongArray, ascending: LongArray) -> BoolArray:
    """Which values are among sorted ones."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    place = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: BoolArray = ascending[place] == values
    return found


def _characters(tables: ExtractedTables, language: str) -> int:
    """Bytes of sentences and of the beginnings of pages, which linking tokenizes."""
    total = 0
    for table, column in (("sentences", "text"), ("pages", "opening")):
        for file in tables.wikipedia(language, table):
            with readable(file):
                about = pq.read_metadata(file)
                groups = [about.row_group(number) for number in range(about.num_row_groups)]
                total += sum(
                    group.column(number).total_uncompressed_size
                    for group in groups
                    for number in range(group.num_columns)
                    if group.column(number).path_in_schema == column
                )
    return total


def _description_tokens(tables: ExtractedTables, language: str, tokens: TokenizerTokens) -> float:
    """Mean tokens of the beginning of a page, on a sample."""
    file = tables.wikipedia(language, "pages")[0]
    with readable(file):
        batches = pq.ParquetFile(file).iter_batches(20 * _SAMPLED_PAGES, columns=["opening"])
        texts = [text for text in next(batches)["opening"].to_pylist() if text]
    step = max(1, len(texts) // _SAMPLED_PAGES)
    lengths = [len(one) for one in tokens.encode(texts[::step])]
    return float(np.mean(lengths)) if lengths else 0.0


def _heldout_share(
    tables: ExtractedTables, languages: dict[str, KnowledgeLanguage]
) -> tuple[float, int]:
    """The share and the seed of held-out pages and facts; of a graph, of those no page tells."""
    low, high = _HELDOUT_SHARES
    smallest = min((one.mentions for one in languages.values() if one.mentions), default=1)
    share = round(min(high, max(low, _HELDOUT_MENTIONS / smallest)), 4)
    told: Any = {}
    try:
        found = json_text.parse((tables.folder / COUNTS).read_bytes())
        told = found.get("settings") or {}
    except (OSError, ValueError, AttributeError) as error:
        raise CorpusError(
            f"{tables.folder / COUNTS}: is damaged ({error}). Write the tables again with isoglot "
            "knowledge extract or isoglot knowledge graph."
        ) from error
    untold = told.get("heldout_share") if isinstance(told, dict) else None
    if untold is None:
        return share, 0
    return float(untold), int(told.get("heldout_seed", 0))
