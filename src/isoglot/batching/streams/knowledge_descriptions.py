"""The stream of descriptions alone, as running text: what XLM-K's ablation puts under MLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Part
from isoglot.batching.streams.knowledge import SOURCE, KnowledgeStream
from isoglot.types import Text

if TYPE_CHECKING:
    from isoglot.batching.streams.knowledge_choice import Choice
    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.store_files import Mapped
    from isoglot.types import FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionStream(KnowledgeStream):
    """Descriptions of entities, each a text of its own."""

    kind: ClassVar[str] = "descriptions"

    @override
    def part(self, corpus: Corpus, language: str, split: Split, choice: Choice, limit: int) -> Part:
        table = corpus.knowledge.descriptions(language).table
        return DescriptionPart(language, corpus.languages.index(language), table, limit)


class DescriptionPart(Part):
    """The descriptions of one language, the same in both splits: they are what is looked for."""

    num_dropped = 0

    def __init__(self, language: str, language_id: int, table: Mapped, limit: int) -> None:
        self.source, self.language, self.language_id = SOURCE, language, language_id
        self.table, self.limit, self.num_examples = table, limit, len(table)

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        return len(self.table["tokens"])

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        offsets = self.table.offsets("tokens")
        lengths = offsets[indices + 1] - offsets[indices]
        return np.asarray(np.minimum(lengths, self.limit), np.int32)[:, None]

    @override
    def example(self, index: int, chance: float) -> Text:
        ids = self.table.tokens("tokens", index)[: self.limit]
        return Text(ids=ids, sentences=np.zeros(len(ids), np.int32), language=self.language_id)

    @override
    def where(self, index: int) -> str:
        return f"{self.table.path}, row {index}"
