"""Writes a knowledge store: the tables as they come, sorted, then an index over descriptions.

    with KnowledgeWriter(folder, tokenizer=fingerprint, settings={...}) as writer:
        writer.entities(batches)                      item int64 ascending, label string
        writer.descriptions("en", batches)            entity int32 ascending, tokens list<int32>
        writer.sentences("en", "train", batches)      page int64 ascending, tokens list<int32>
        writer.mentions("en", "train", batches)       sentence int64, start, end, entity: ascending
        writer.relations(batches)                     relation int32 (P number), label, count int64
        writer.triples("train", batches)              subject, relation, object int32: ascending
        writer.finish(dropped={...})

A table is given in one call, as record batches or tables, of any size, with columns in any order;
what was not given is empty. Rows are checked as they come: a store that is written is whole.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from isoglot import __version__
from isoglot.corpus.disk import writing
from isoglot.corpus.heldout import SPLITS
from isoglot.corpus.knowledge.store_about import (
    FILE,
    About,
    LanguageCounts,
    fingerprint_of,
    write_about,
)
from isoglot.corpus.knowledge.store_checks import check_lengths, check_order
from isoglot.corpus.knowledge.store_files import (
    INT16,
    INT32,
    INT64,
    STRING,
    TOKENS,
    Mapped,
    TableWriter,
    between,
)
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.store_checks import Rows
    from isoglot.corpus.knowledge.store_files import TableEntry


MOST_TOKENS = 256
"""Tokens of a description that are kept (XLM-K, knowledge construction)."""
_ENTITIES_AT_A_TIME = 2**20


class KnowledgeWriter:
    """Writes the files of one store; `knowledge.json` last, by `finish`."""

    def __init__(self, folder: Path, *, tokenizer: str, settings: Mapping[str, Any]) -> None:
        """What an earlier store left in the folder goes away.

        Args:
            folder: `knowledge` inside a prepared corpus.
            tokenizer: the fingerprint in the corpus's manifest.
            settings: what decided the content, as JSON can hold it.
        """
        self.folder, self._tokenizer, self._settings = folder, tokenizer, dict(settings)
        self._tables: dict[str, TableEntry] = {}
        self._unfinished: TableWriter | None = None
        with writing(folder):
            (folder / FILE).unlink(missing_ok=True)
            for name in ("descriptions", "sentences", "mentions", "triples"):
                shutil.rmtree(folder / name, ignore_errors=True)

    def __enter__(self) -> KnowledgeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._unfinished is not None:
            self._unfinished.abandon()

    def entities(self, batches: Iterable[Rows]) -> None:
        """Every entity, items ascending; an entity's number is its row."""
        self._write("entities.arrow", {"item": INT64, "label": STRING}, batches, order=("item",))

    def descriptions(self, language: str, batches: Iterable[Rows]) -> None:
        """The descriptions in a language, entities ascending, from 1 to 256 tokens each."""
        columns = {"entity": INT32, "tokens": TOKENS}
        file = f"descriptions/{language}.arrow"
        self._write(file, columns, batches, order=("entity",), longest=MOST_TOKENS)

    def sentences(self, language: str, split: Split, batches: Iterable[Rows]) -> None:
        """The sentences of pages with mentions, page after page, in the order of the page."""
        file = f"sentences/{language}/{split}.arrow"
        columns = {"page": INT64, "tokens": TOKENS}
        self._write(file, columns, batches, order=("page",), repeats=True)

    def mentions(self, language: str, split: Split, batches: Iterable[Rows]) -> None:
        """Token spans in sentences (by row), sorted by sentence and start."""
        columns = {"sentence": INT64, "start": INT32, "end": INT32, "entity": INT32}
        file = f"mentions/{language}/{split}.arrow"
        self._write(file, columns, batches, order=("sentence", "start"))

    def relations(self, batches: Iterable[Rows]) -> None:
        """Every relation; its number is its row."""
        columns = {"relation": INT32, "label": STRING, "count": INT64}
        self._write("relations.arrow", columns, batches, order=())

    def triples(self, split: Split, batches: Iterable[Rows]) -> None:
        """Statements, in numbers of entities and relations, sorted by all three."""
        columns = {"subject": INT32, "relation": INT32, "object": INT32}
        self._write(f"triples/{split}.arrow", columns, batches, order=tuple(columns))

    def finish(self, *, dropped: Mapping[str, Mapping[str, int]] | None = None) -> About:
        """Checks that all numbers fit together, writes the index and knowledge.json."""
        for name, give in (("entities", self.entities), ("relations", self.relations)):
            if f"{name}.arrow" not in self._tables:
                give([])
        languages = sorted(
            {
                name.split("/")[1].split(".")[0]
                for name in self._tables
                if "/" in name and not name.startswith("triples")
            }
        )
        for language in languages:
            if f"descriptions/{language}.arrow" not in self._tables:
                self.descriptions(language, [])
            for split in SPLITS:
                self._complete_language(language, split)
        for split in SPLITS:
            if f"triples/{split}.arrow" not in self._tables:
                self.triples(split, [])
            self._check_numbers(f"triples/{split}.arrow", "subject", "entities.arrow")
            self._check_numbers(f"triples/{split}.arrow", "object", "entities.arrow")
            self._check_numbers(f"triples/{split}.arrow", "relation", "relations.arrow")
        self._write_index(languages)
        files = tuple(self._tables.values())
        about = About(
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
        write_about(self.folder, about)
        return about

    def _write(
        self,
        file: str,
        columns: Mapping[str, pa.DataType],
        batches: Iterable[Rows],
        *,
        order: tuple[str, ...],
        repeats: bool = False,
        longest: int | None = None,
    ) -> None:
        assert file not in self._tables, f"{file} is written once"
        self._unfinished = table = TableWriter(self.folder, file, columns)
        last: tuple[int, ...] | None = None
        for batch in batches:
            if batch.num_rows:
                last = check_order(self.folder / file, batch, order, last, repeats=repeats)
                if longest is not None:
                    check_lengths(self.folder / file, batch, longest)
                table.append(batch)
        self._tables[file] = table.close()
        self._unfinished = None

    def _complete_language(self, language: str, split: Split) -> None:
        """Missing files as empty ones; every span inside its sentence."""
        mentions, sentences = (
            f"mentions/{language}/{split}.arrow",
            f"sentences/{language}/{split}.arrow",
        )
        if sentences not in self._tables:
            self.sentences(language, split, [])
        if mentions not in self._tables:
            self.mentions(language, split, [])
        self._check_numbers(mentions, "sentence", sentences)
        self._check_numbers(mentions, "entity", "entities.arrow")
        if not self._tables[mentions].rows:
            return
        table = self._mapped(mentions)
        lengths = np.diff(self._mapped(sentences).offsets("tokens"))
        starts, ends = table["start"], table["end"]
        bad = (starts < 0) | (starts >= ends) | (ends > lengths[table["sentence"]])
        if bad.any():
            raise CorpusError(
                f"{table.path}: the span of row {int(bad.argmax())} is not inside its sentence."
            )

    def _check_numbers(self, file: str, column: str, numbered: str) -> None:
        rows = self._tables[numbered].rows
        if not self._tables[file].rows:
            return
        values = self._mapped(file)[column]
        bad = (values < 0) | (values >= rows)
        if bad.any():
            row = int(bad.argmax())
            raise CorpusError(
                f"{self.folder / file}: {column} {values[row]} of row {row} is not in {numbered}, "
                f"which has {rows} rows."
            )

    def _write_index(self, languages: list[str]) -> None:
        """Where each entity is described: language, row and length, entity after entity."""
        for language in languages:
            self._check_numbers(f"descriptions/{language}.arrow", "entity", "entities.arrow")
        entities = self._tables["entities.arrow"].rows
        numbers = np.zeros(entities + 1, np.int64)
        for language in languages:
            if self._tables[f"descriptions/{language}.arrow"].rows:
                numbers[1 + self._mapped(f"descriptions/{language}.arrow")["entity"]] += 1
        first = pa.table({"first": np.cumsum(numbers)})
        self._write("described_first.arrow", {"first": INT64}, [first], order=())
        columns = {"language": INT16, "row": INT32, "length": INT32}
        self._write("described.arrow", columns, self._described(languages, entities), order=())

    def _described(self, languages: list[str], entities: int) -> Iterator[pa.Table]:
        tables = [self._mapped(f"descriptions/{language}.arrow") for language in languages]
        filled = [(number, table) for number, table in enumerate(tables) if table.rows]
        for begin in range(0, entities, _ENTITIES_AT_A_TIME):
            found: list[tuple[npt.NDArray[Any], ...]] = []
            for number, table in filled:
                low, high = between(table["entity"], begin, begin + _ENTITIES_AT_A_TIME)
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
            description_tokens=descriptions.values,
            sentences={split: entry.rows for split, entry in sentences.items()},
            sentence_tokens={split: entry.values for split, entry in sentences.items()},
            mentions={s: self._tables[f"mentions/{language}/{s}.arrow"].rows for s in SPLITS},
        )

    def _mapped(self, file: str) -> Mapped:
        return Mapped(self.folder / file, self._tables[file].rows)
