"""Which tokens are hidden, and what is shown in their place.

How many is known from the length (rate × tokens, rounded, at least one; fewer only where special
tokens or long words leave no more), so that rows and prediction sites are planned before any text
is read. Which ones depends on the unit: single
tokens (BERT, XLM), whole words (BERT's later release), spans of geometric length (SpanBERT) or
phrases, n-grams of high PMI, and the single tokens between them (PMI-Masking). Of
the chosen tokens 80 % become [MASK], 10 % a random token, 10 % stay. Special tokens are never
chosen and never drawn as replacements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from isoglot.corpus.phrases import PhraseConfig, Phrases, phrases_of
from isoglot.errors import require
from isoglot.types import IGNORE, BoolArray, IntArray, LongArray, Vocabulary

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Settings of masking."""

    rate: float = 0.15
    """Share of the tokens to predict."""
    unit: Literal["token", "word", "span", "pmi"] = "token"
    """Hide single tokens, whole words, spans of geometric length, or phrases of high PMI."""
    mask_share: float = 0.8
    """Share of the chosen tokens shown as the mask token."""
    random_share: float = 0.1
    """Share of the chosen tokens shown as a random token; the rest stay as they are."""
    span_p: float = 0.2
    """Spans: the parameter of the geometric distribution of lengths (mean 1/p before the cut)."""
    span_most: int = 10
    """Spans: the longest."""
    phrases: str | None = None
    """Phrases of high PMI: a file of them; none means those found in the corpus, kept with it."""
    pmi: PhraseConfig = field(default_factory=PhraseConfig)
    """Phrases of high PMI: which n-grams they are, where none are given."""

    def __post_init__(self) -> None:
        require(0 < self.rate <= 1, "masking.rate must be above 0 and at most 1")
        shares = (self.mask_share, self.random_share)
        require(min(shares) >= 0, "masking's shares must not be negative")
        require(sum(shares) <= 1, "masking's shares must add up to at most 1")
        require(0 < self.span_p <= 1, "masking.span_p must be above 0 and at most 1")
        require(self.span_most >= 1, "masking.span_most must be 1 or more")

    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        """Masking that knows its phrases, found in a corpus unless they are given."""
        if self.unit != "pmi" or self.phrases is not None:
            return self
        return replace(self, phrases=str(phrases_of(corpus, self.pmi, progress)))

    def budget(self, lengths: IntArray) -> IntArray:
        """How many of this many tokens are predicted."""
        return share(self.rate, lengths)

    def choose(
        self, ids: IntArray, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> list[LongArray]:
        """The positions to hide, no more in all than the budget allows; of spans, an array each."""
        allowed = np.flatnonzero(~vocabulary.is_special[ids])
        if not len(allowed):
            return []
        budget = min(int(self.budget(np.array(len(allowed)))), len(allowed))
        if self.unit == "span":
            return self._spans(allowed, budget, rng)
        if self.unit != "token":
            units = _units(allowed, self._starts(ids, vocabulary), budget, rng)
            if units:
                return units
        return [allowed[rng.permutation(len(allowed))[:budget]]]

    def hide(
        self,
        ids: IntArray,
        units: list[LongArray],
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> tuple[IntArray, IntArray]:
        """(what is shown, what must be predicted) once the units are hidden."""
        shown, targets = ids.copy(), np.full(len(ids), IGNORE, np.int32)
        if not units:
            return shown, targets
        chosen = np.concatenate(units)
        targets[chosen] = ids[chosen]
        # one fate for a whole span (SpanBERT) or phrase, one for each token otherwise
        together = self.unit in ("span", "pmi")
        fate = rng.random(len(units) if together else len(chosen))
        if together:
            fate = np.repeat(fate, [len(unit) for unit in units])
        shown[chosen[fate < self.mask_share]] = vocabulary.mask
        random = chosen[(fate >= self.mask_share) & (fate < self.mask_share + self.random_share)]
        # uniform over the vocabulary without its special tokens
        shown[random] = vocabulary.ordinary[
            rng.integers(len(vocabulary.ordinary), size=len(random))
        ]
        return shown, targets

    def _starts(self, ids: IntArray, vocabulary: Vocabulary) -> BoolArray:
        """For each token: does a word, or a phrase, begin here?"""
        if self.unit == "pmi":
            assert self.phrases is not None, "masking by PMI is prepared before it is used"
            return Phrases.open(self.phrases).starts(ids)
        return vocabulary.word_starts[ids]

    def _spans(self, allowed: LongArray, budget: int, rng: np.random.Generator) -> list[LongArray]:
        free: BoolArray = np.ones(len(allowed), np.bool_)
        units: list[LongArray] = []
        while budget:
            length = min(int(rng.geometric(self.span_p)), self.span_most, budget)
            start = int(rng.choice(np.flatnonzero(free)))
            stop = start + 1
            # a span ends early where the next token is taken, special or the text's last
            while stop - start < length and stop < len(free) and free[stop]:
                if allowed[stop] != allowed[stop - 1] + 1:
                    break
                stop += 1
            free[start:stop] = False
            units.append(allowed[start:stop])
            budget -= stop - start
        return units


def share(rate: float, lengths: IntArray) -> IntArray:
    """That share of so many tokens, rounded, at least one."""
    return np.asarray(np.maximum(np.rint(rate * lengths), 1), np.int32)


def _units(
    allowed: LongArray, starts: BoolArray, budget: int, rng: np.random.Generator
) -> list[LongArray]:
    """Whole words or phrases in random order while they fit into the budget; none if none fits.

    A text without spaces may be one long "word": then the caller falls back on single tokens.
    """
    new = starts[allowed]
    new[0] = True
    new[1:] |= np.diff(allowed) > 1
    words = np.split(allowed, np.flatnonzero(new)[1:])
    chosen = []
    for number in rng.permutation(len(words)):
        if len(words[number]) <= budget:
            chosen.append(words[number])
            budget -= len(words[number])
        if not budget:
            break
    return chosen
