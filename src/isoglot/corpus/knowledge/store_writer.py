"""Writes a knowledge store: sorted tables, then an index of the descriptions of each entity.

    writer = KnowledgeWriter(folder, tokenizer=fingerprint, settings={...})
    writer.entities(batches)
    writer.descriptions("en", batches)
    ...
    writer.finish(dropped={...})

A table is given in one call, as record batches or tables of any size, with columns in any order; a
table not given is empty. All rows are checked.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from isoglot import __version__
from isoglot.atomic import write_errors
from isoglot.corpus.knowledge.store import MANIFEST, KnowledgeManifest, LanguageCounts, row_range
from isoglot.corpus.knowledge.store_shards import (
    INT16,
    INT32,
    INT64,
    STRING,
    TOKENS,
    SpooledShard,
    TableSchema,
)
from isoglot.corpus.storage.manifest import fingerprint_of, save_manifest
from isoglot.corpus.storage.shards import SPLITS, Shard
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.corpus.knowledge.store_shards import Rows
    from isoglot.corpus.storage.shards import ShardEntry, Split
    from isoglot.types import BoolArray, LongArray

MAX_DESCRIPTION_TOKENS = 256
"""Tokens of a description (XLM-K, knowledge construction)."""
_BATCH_ENTITIES = 2**20
_SCHEMAS = {
    "entities": TableSchema(columns={"item": INT64, "label": STRING}, order=("item",)),
    "descriptions": TableSchema(
        columns={"entity": INT32, "tokens": TOKENS},
        order=("entity",),
        max_tokens=MAX_DESCRIPTION_TOKENS,
    ),
    "sentences": TableSchema(
        columns={"page": INT64, "tokens": TOKENS}, order=("page",), repeats=True
    ),
    "mentions": TableSchema(
        columns={"sentence": INT64, "start": INT32, "end": INT32, "entity": INT32},
        order=("sentence", "start"),
    ),
    "relations": TableSchema(columns={"relation": INT32, "label": STRING, "count": INT64}),
    "triples": TableSchema(
        columns={"subject": INT32, "relation": INT32, "object": INT32},
        order=("subject", "relation", "object"),
    ),
    "described_first": TableSchema(columns={"first": INT64}),
    "described": TableSchema(columns={"language": INT16, "row": INT32, "length": INT32}),
}
"""Table -> schema; `store` says what the columns hold."""


class KnowledgeWriter:
    """Writes the files of one store; `knowledge.json` last, by `finish`."""

    def __init__(self, folder: Path, *, tokenizer: str, settings: Mapping[str, Any]) -> None:
        """Removes an earlier store in the folder.

        `tokenizer` is the fingerprint in the corpus's manifest; `settings` is everything that
        decided the content, as JSON.
        """
        self.folder, self._tokenizer, self._settings = folder, tokenizer, dict(settings)
        self._tables: dict[str, ShardEntry] = {}
        with write_errors(folder):
            (folder / MANIFEST).unlink(missing_ok=True)
            for name in ("descriptions", "sentences", "mentions", "triples"):
                shutil.rmtree(folder / name, ignore_errors=True)

    def entities(self, batches: Iterable[Rows]) -> None:
        """All entities, items ascending; an entity's number is its row."""
        self._write("entities.arrow", batches)

    def descriptions(self, language: str, batches: Iterable[Rows]) -> None:
        """The descriptions in a language, entities ascending, from 1 to 256 tokens each."""
        self._write(f"descriptions/{language}.arrow", batches)

    def sentences(self, language: str, split: Split, batches: Iterable[Rows]) -> None:
        """The sentences of pages with mentions, page after page, in the order of the page."""
        self._write(f"sentences/{language}/{split}.arrow", batches)

    def mentions(self, language: str, split: Split, batches: Iterable[Rows]) -> int:
        """Token spans in sentences (by row), sorted by sentence and start; gives their number."""
        return self._write(f"mentions/{language}/{split}.arrow", batches)

    def relations(self, batches: Iterable[Rows]) -> None:
        """All relations (P numbers); a relation's number is its row."""
        self._write("relations.arrow", batches)

    def triples(self, split: Split, batches: Iterable[Rows]) -> None:
        """Triples, in numbers of entities and relations, sorted by all three."""
        self._write(f"triples/{split}.arrow", batches)

    def finish(
        self, *, dropped: Mapping[str, Mapping[str, int]] | None = None
    ) -> KnowledgeManifest:
        """Checks all references between tables, writes the index and knowledge.json."""
        languages = self._complete()
        self._check_references(languages)
        self._write_index(languages)
        files = tuple(self._tables.values())
        manifest = KnowledgeManifest(
            isoglot=__version__,
            fingerprint=fingerprint_of(files, self._tokenizer),
            tokenizer=self._tokenizer,
            languages=tuple(languages),
            entities=self._tables["entities.arrow"].rows,
            relations=self._tables["relations.arrow"].rows,
            triples={split: self._tables[f"triples/{split}.arrow"].rows for split in SPLITS},
            counts={language: self._counts(language) for language in languages},
            dropped={name: dict(reasons) for name, reasons in (dropped or {}).items()},
            settings=self._settings,
            files=files,
        )
        save_manifest(self.folder / MANIFEST, manifest)
        return manifest

    def _write(self, file: str, batches: Iterable[Rows]) -> int:
        assert file not in self._tables, f"{file} is written once"
        schema = _SCHEMAS[file.split("/", maxsplit=1)[0].removesuffix(".arrow")]
        with SpooledShard(self.folder, file, schema) as shard:
            for batch in batches:
                shard.append(batch)
            self._tables[file] = shard.write()
        return shard.rows

    def _complete(self) -> list[str]:
        """Writes missing tables as empty ones; gives the languages."""
        by_language = [name for name in self._tables if "/" in name and "triples/" not in name]
        languages = sorted({name.split("/")[1].split(".")[0] for name in by_language})
        files = ["entities.arrow", "relations.arrow"]
        for language in languages:
            files.append(f"descriptions/{language}.arrow")
            for split in SPLITS:
                files.append(f"sentences/{language}/{split}.arrow")
                files.append(f"mentions/{language}/{split}.arrow")
        files += [f"triples/{split}.arrow" for split in SPLITS]
        for file in files:
            if file not in self._tables:
                self._write(file, [])
        return languages

    def _check_references(self, languages: list[str]) -> None:
        for language in languages:
            self._check_numbers(f"descriptions/{language}.arrow", "entity", "entities.arrow")
            for split in SPLITS:
                mentions = f"mentions/{language}/{split}.arrow"
                sentences = f"sentences/{language}/{split}.arrow"
                self._check_numbers(mentions, "sentence", sentences)
                self._check_numbers(mentions, "entity", "entities.arrow")
                self._check_spans(mentions, sentences)
        for split in SPLITS:
            triples = f"triples/{split}.arrow"
            self._check_numbers(triples, "subject", "entities.arrow")
            self._check_numbers(triples, "object", "entities.arrow")
            self._check_numbers(triples, "relation", "relations.arrow")

    def _check_numbers(self, file: str, column: str, referenced: str) -> None:
        """Raises unless a column holds rows of another table."""
        rows = self._tables[referenced].rows
        if not self._tables[file].rows:
            return
        values = self._open(file)[column]
        bad = (values < 0) | (values >= rows)
        if bad.any():
            row = int(bad.argmax())
            raise CorpusError(
                f"{self.folder / file}: {column} {values[row]} of row {row} is not in "
                f"{referenced}, which has {rows} rows."
            )

    def _check_spans(self, mentions: str, sentences: str) -> None:
        """Raises unless every span is inside its sentence."""
        if not self._tables[mentions].rows:
            return
        table = self._open(mentions)
        lengths = np.diff(self._open(sentences).offsets("tokens"))
        starts, ends = table["start"], table["end"]
        bad = (starts < 0) | (starts >= ends) | (ends > lengths[table["sentence"]])
        if bad.any():
            raise CorpusError(
                f"{table.path}: the span of row {int(bad.argmax())} is not inside its sentence."
            )

    def _write_index(self, languages: list[str]) -> None:
        """The descriptions of each entity: language, row and length, entity after entity."""
        entities = self._tables["entities.arrow"].rows
        numbers = np.zeros(entities + 1, np.int64)
        for language in languages:
            if self._tables[f"descriptions/{language}.arrow"].rows:
                numbers[1 + self._open(f"descriptions/{language}.arrow")["entity"]] += 1
        self._write("described_first.arrow", [pa.table({"first": np.cumsum(numbers)})])
        self._write("described.arrow", self._described(languages, entities))

    def _described(self, languages: list[str], entities: int) -> Iterator[pa.Table]:
        tables = [self._open(f"descriptions/{language}.arrow") for language in languages]
        filled = [(number, table) for number, table in enumerate(tables) if len(table)]
        for begin in range(0, entities, _BATCH_ENTITIES):
            found: list[tuple[npt.NDArray[Any], ...]] = []
            for number, table in filled:
                low, high = row_range(table["entity"], begin, begin + _BATCH_ENTITIES)
                rows = np.arange(low, high)
                lengths = np.diff(table.offsets("tokens")[low : high + 1])
                found.append((table["entity"][low:high], np.full(len(rows), number), rows, lengths))
            if found:
                entity, language, row, length = (
                    np.concatenate(part) for part in zip(*found, strict=True)
                )
                order = np.argsort(entity, kind="stable")
                yield pa.table(
                    {"language": language[order], "row": row[order], "length": length[order]}
                )

    def _counts(self, language: str) -> LanguageCounts:
        descriptions = self._tables[f"descriptions/{language}.arrow"]
        sentences = {s: self._tables[f"sentences/{language}/{s}.arrow"] for s in SPLITS}
        return LanguageCounts(
            descriptions=descriptions.rows,
            description_tokens=descriptions.tokens["tokens"],
            sentences={split: entry.rows for split, entry in sentences.items()},
            sentence_tokens={split: entry.tokens["tokens"] for split, entry in sentences.items()},
            mentions={s: self._tables[f"mentions/{language}/{s}.arrow"].rows for s in SPLITS},
        )

    def _open(self, file: str) -> Shard:
        return Shard(self.folder / file, self._tables[file].rows)


def are_held_out(*keys: LongArray, share: float, seed: int = 0) -> BoolArray:
    """True for about `share` of the distinct rows of these columns, decided by a hash of them."""
    with np.errstate(over="ignore"):
        state = np.full(len(keys[0]), seed, np.int64).astype(np.uint64)
        for key in keys:
            state = _scrambled(state ^ key.astype(np.int64).astype(np.uint64))
    return state < np.uint64(min(int(share * 2**64), 2**64 - 1))


def are_facts_held_out(
    subjects: LongArray, objects: LongArray, *, share: float, seed: int = 0
) -> BoolArray:
    """True for about `share` of the facts, decided by the two items, in either order.

    All facts about the same two items are in one split: another relation between them, or the
    inverse one, would tell the object of a held-out fact.
    """
    pairs = np.minimum(subjects, objects), np.maximum(subjects, objects)
    return are_held_out(*pairs, share=share, seed=seed)


def _scrambled(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The output function of SplitMix64 (Steele et al., 2014), after one step."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))
