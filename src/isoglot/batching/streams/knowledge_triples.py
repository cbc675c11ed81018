"""The stream of triples: one draw is a subject and an object, described, and their relation.

A triple belongs to every language that its subject is described in; languages are drawn as in any
stream, and the object's description in another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.batching.streams.base import Part
from isoglot.batching.streams.knowledge import SOURCE, KnowledgeStream, chunks
from isoglot.types import Statement

if TYPE_CHECKING:
    from isoglot.batching.streams.knowledge_choice import Choice
    from isoglot.corpus import Corpus
    from isoglot.corpus.heldout import Split
    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.types import FloatArray, IntArray, LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleStream(KnowledgeStream):
    """Subject, relation and object, the two described in different languages."""

    kind: ClassVar[str] = "triples"

    @override
    def part(self, corpus: Corpus, language: str, split: Split, choice: Choice, limit: int) -> Part:
        language_id = corpus.languages.index(language)
        return TriplePart(language, language_id, corpus.knowledge, split, choice, limit)


class TriplePart(Part):
    """The triples whose subject is described in one language."""

    why_dropped: ClassVar[str] = "as their object has no description that may be drawn"

    def __init__(
        self,
        language: str,
        language_id: int,
        knowledge: Knowledge,
        split: Split,
        choice: Choice,
        limit: int,
    ) -> None:
        self.source, self.language, self.language_id = SOURCE, language, language_id
        self.knowledge, self.triples = knowledge, knowledge.triples(split)
        self.subjects = knowledge.descriptions(language)
        self.choice, self.own, self.limit = choice, choice.number_of(language), limit
        self.num_dropped = 0
        kept = [self._good(rows) for rows in chunks(len(self.triples))]
        self.rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
        self.num_examples = len(self.rows)

    def _good(self, chunk: slice) -> LongArray:
        described = self.subjects.rows(self.triples["subject"][chunk]) >= 0
        good = described & self.choice.possible(self.triples["object"][chunk], self.own)
        self.num_dropped += int(described.sum() - good.sum())
        return np.asarray(chunk.start + np.flatnonzero(good))

    @property
    @override
    def num_tokens(self) -> int:  # type: ignore[override]
        """Tokens of the subjects' descriptions."""
        offsets = self.subjects.table.offsets("tokens")
        rows = self.subjects.rows(self.triples["subject"][self.rows])
        return int((offsets[rows + 1] - offsets[rows]).sum())

    @override
    def sizes(self, indices: LongArray, chances: FloatArray) -> IntArray:
        rows = self.rows[indices]
        offsets = self.subjects.table.offsets("tokens")
        subjects = self.subjects.rows(self.triples["subject"][rows])
        lengths = (
            offsets[subjects + 1] - offsets[subjects],
            self.choice.lengths(self._chosen(rows, chances)),
        )
        return np.minimum(np.stack(lengths, axis=1), self.limit).astype(np.int32)

    @override
    def example(self, index: int, chance: float) -> Statement:
        rows = self.rows[index : index + 1]
        subject, relation, thing = (
            int(self.triples[name][rows[0]]) for name in ("subject", "relation", "object")
        )
        described = self.subjects[subject]
        assert described is not None, "others are left out when the stream is opened"
        chosen = self._chosen(rows, np.array([chance]))
        description, language = self.choice.read(int(chosen[0]), self.limit)
        return Statement(
            subject=described[: self.limit],
            subject_language=self.language_id,
            relation=relation,
            object=description,
            object_language=language,
            object_entity=thing,
            known=self.knowledge.objects(subject, relation).astype(np.int64),
        )

    @override
    def where(self, index: int) -> str:
        return f"{self.triples.path}, row {int(self.rows[index])}"

    def _chosen(self, rows: LongArray, chances: FloatArray) -> LongArray:
        return self.choice(self.triples["object"][rows], self.own, chances)
