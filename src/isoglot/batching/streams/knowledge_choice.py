"""Which description of an entity goes with a draw: its language, by the draw's number in [0, 1).

Works on thousands of draws at once, from the index of descriptions alone. Weights are integers, so
that a draw's choice is the same whichever draws it is looked up with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

_FINEST = 2**20
NONE = -1


class Choice:
    """Draws descriptions."""

    def __init__(
        self,
        knowledge: Knowledge,
        languages: tuple[str, ...],
        counts: FloatArray,
        how: Literal["other", "same", "any"],
        alpha: float,
    ) -> None:
        """Settings of a stream, made ready.

        Args:
            knowledge: the store.
            languages: the corpus's, in the order of their ids.
            counts: descriptions in each of the store's languages; 0: it is never drawn from.
            how: which language, seen from the text's.
            alpha: languages are drawn with p proportional to counts^alpha.
        """
        self.knowledge, self.how = knowledge, how
        allowed = counts > 0
        shares = np.where(allowed, (counts / max(counts.max(initial=0), 1)) ** alpha, 0)
        self.weights = np.where(allowed, np.maximum(np.rint(_FINEST * shares), 1), 0).astype(
            np.int64
        )
        self.language_ids = np.array(
            [languages.index(c) if c in languages else NONE for c in knowledge.languages], np.int64
        )

    def number_of(self, language: str) -> int:
        """A language's number in the store."""
        return self.knowledge.languages.index(language)

    def possible(self, entities: IntArray, own: int) -> BoolArray:
        """Which entities have a description that may be drawn for a text in a language."""
        return np.asarray(self(entities, own, np.zeros(len(entities))) != NONE)

    def __call__(self, entities: IntArray, own: int, chances: FloatArray) -> LongArray:
        """The description of each entity for a text in a language: a row of the index, or NONE."""
        described = self.knowledge.described
        first, number = described[entities]
        ends = np.cumsum(number)
        rows = np.repeat(first - ends + number, number) + np.arange(number.sum())
        languages = described.where["language"][rows] if len(rows) else np.zeros(0, np.int16)
        weights = self.weights[languages]
        if self.how != "any":
            weights = np.where((languages == own) == (self.how == "same"), weights, 0)
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        before = sums[ends - number]
        total = sums[ends] - before
        wanted = before + np.minimum((chances * total).astype(np.int64), np.maximum(total - 1, 0))
        places = np.searchsorted(sums[1:], wanted, "right")
        found = np.full(len(entities), NONE, np.int64)
        good = total > 0
        found[good] = rows[places[good]]
        return found

    def lengths(self, rows: LongArray) -> IntArray:
        """The tokens of these rows of the index."""
        lengths: IntArray = self.knowledge.described.where["length"][rows]
        return lengths

    def read(self, row: int, limit: int) -> tuple[IntArray, int]:
        """The first tokens of a description, and the id of its language in the corpus."""
        where = self.knowledge.described.where
        number = int(where["language"][row])
        table = self.knowledge.descriptions(self.knowledge.languages[number]).table
        tokens = table.tokens("tokens", int(where["row"][row]))[:limit]
        return tokens, int(self.language_ids[number])
