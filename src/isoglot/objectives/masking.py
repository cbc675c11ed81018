"""Masking: which tokens are predicted, and what replaces them in the input.

The number of masked tokens follows from the length (rate × tokens, rounded, at least one; fewer
only where special tokens or long words leave no more), so that rows and target positions are
planned before any text is read. Which positions are chosen depends on `unit`: single tokens (BERT,
XLM), whole words (BERT's whole-word release), spans of geometric length (SpanBERT), or n-grams of
high PMI and the single tokens between them (PMI-Masking). Of the chosen tokens 80 % become [MASK],
10 % a random token, 10 % stay. Special tokens are never chosen and never drawn as replacements.

    build_sequence   a b c d           ->  [CLS] a b c d [SEP]
    apply_mask       choose_positions  ->  replace_tokens  ->  [CLS] a [MASK] c d [SEP], target b
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from isoglot.corpus.cooccurrence.phrases import PhraseConfig, Phrases, phrases_of
from isoglot.errors import require
from isoglot.ranges import Probability, Range, check_ranges
from isoglot.types import IGNORE, BoolArray, IntArray, LongArray, Sequence

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus
    from isoglot.corpus.engine.runner import Progress
    from isoglot.types import Rng, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Settings of masking."""

    rate: Annotated[float, Range(0, 1, above=True)] = 0.15
    """Share of the tokens to predict; a stage's `masking_rate` replaces it in `mlm` and `tlm`."""
    unit: Literal["token", "word", "span", "pmi"] = "token"
    """Mask single tokens, whole words, spans of geometric length, or phrases of high PMI."""
    mask_replace_prob: Probability = 0.8
    """Probability that a chosen token is replaced by the mask token."""
    random_replace_prob: Probability = 0.1
    """Probability that a chosen token is replaced by a random token; the rest stay."""
    span_p: Annotated[float, Range(0, 1, above=True)] = 0.2
    """Spans: the parameter of the geometric distribution of lengths (mean 1/p, before the cut)."""
    span_max_tokens: Annotated[int, Range(1, 1000)] = 10
    """Spans: most tokens of a span."""
    phrases: str | None = None
    """PMI: a file of phrases; none means those found in the corpus, which are stored with it."""
    pmi: PhraseConfig = field(default_factory=PhraseConfig)
    """PMI: which n-grams become phrases if no file is given."""

    def __post_init__(self) -> None:
        check_ranges(self)
        check_replace_probs("masking", self.mask_replace_prob, self.random_replace_prob)

    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        """The settings with a phrase file; phrases are found in the corpus unless given."""
        if self.unit != "pmi":
            return self
        file = self.phrases or str(phrases_of(corpus, self.pmi, progress))
        Phrases.open(file)  # a damaged file is refused before training
        return replace(self, phrases=file)

    def num_masked(self, lengths: IntArray) -> IntArray:
        """How many of this many tokens are masked."""
        return rounded_share(self.rate, lengths)

    def choose_positions(self, ids: IntArray, vocabulary: Vocabulary, rng: Rng) -> list[LongArray]:
        """The positions to mask, at most `num_masked` in all; an array for each unit."""
        allowed = np.flatnonzero(~vocabulary.is_special[ids])
        if not len(allowed):
            return []
        budget = min(int(self.num_masked(np.array(len(allowed)))), len(allowed))
        if self.unit == "span":
            return self._choose_spans(allowed, budget, rng)
        if self.unit != "token":
            units = _choose_units(allowed, self._unit_starts(ids, vocabulary), budget, rng)
            if units:
                return units
        return [allowed[rng.permutation(len(allowed))[:budget]]]

    def replace_tokens(
        self, ids: IntArray, units: list[LongArray], vocabulary: Vocabulary, rng: Rng
    ) -> tuple[IntArray, IntArray]:
        """(input ids, targets) once the tokens of the chosen units are masked."""
        masked, targets = ids.copy(), np.full(len(ids), IGNORE, np.int32)
        if not units:
            return masked, targets
        chosen = np.concatenate(units)
        targets[chosen] = ids[chosen]
        # one draw for a whole span (SpanBERT) or phrase, one for each token otherwise
        per_unit = self.unit in ("span", "pmi")
        draws = rng.random(len(units) if per_unit else len(chosen))
        if per_unit:
            draws = np.repeat(draws, [len(unit) for unit in units])
        replaced = self.mask_replace_prob + self.random_replace_prob
        masked[chosen[draws < self.mask_replace_prob]] = vocabulary.mask
        random = chosen[(draws >= self.mask_replace_prob) & (draws < replaced)]
        # uniform over the vocabulary without its special tokens
        masked[random] = vocabulary.ordinary[
            rng.integers(len(vocabulary.ordinary), size=len(random))
        ]
        return masked, targets

    def _unit_starts(self, ids: IntArray, vocabulary: Vocabulary) -> BoolArray:
        """For each token: does a word, or a phrase, begin here?"""
        if self.unit == "pmi":
            assert self.phrases is not None, "masking by PMI is prepared before it is used"
            return Phrases.open(self.phrases).starts(ids)
        return vocabulary.word_starts[ids]

    def _choose_spans(self, allowed: LongArray, budget: int, rng: Rng) -> list[LongArray]:
        free: BoolArray = np.ones(len(allowed), np.bool_)
        units: list[LongArray] = []
        while budget:
            length = min(int(rng.geometric(self.span_p)), self.span_max_tokens, budget)
            start = int(rng.choice(np.flatnonzero(free)))
            stop = start + 1
            # a span ends early before a token that is chosen already, special or the last
            while stop - start < length and stop < len(free) and free[stop]:
                if allowed[stop] != allowed[stop - 1] + 1:
                    break
                stop += 1
            free[start:stop] = False
            units.append(allowed[start:stop])
            budget -= stop - start
        return units


def _choose_units(allowed: LongArray, starts: BoolArray, budget: int, rng: Rng) -> list[LongArray]:
    """Whole words or phrases in random order while they fit into the budget; none if none fits.

    A text without spaces may be one long "word": the caller then masks single tokens.
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


def rounded_share(rate: float, lengths: IntArray) -> IntArray:
    """`rate` × lengths, rounded, at least one."""
    return np.asarray(np.maximum(np.rint(rate * lengths), 1), np.int32)


def check_replace_probs(name: str, mask: float, random: float) -> None:
    """Raise if both are more than 1 together; the rest is the probability that a token stays."""
    require(mask + random <= 1, f"{name}'s replacement probabilities must add up to at most 1")


def build_sequence(
    ids: IntArray, language: int, vocabulary: Vocabulary, sentences: IntArray | None = None
) -> Sequence:
    """`[CLS] ids [SEP]` without targets; without `sentences`, all tokens are of sentence 0."""
    if sentences is not None:
        sentences = np.concatenate([sentences[:1], sentences, sentences[-1:]])
    ids = np.concatenate([[vocabulary.cls], ids, [vocabulary.sep]])
    return new_sequence(ids, language, sentences=sentences)


def new_sequence(
    ids: IntArray | LongArray,
    languages: IntArray | int,
    *,
    positions: IntArray | LongArray | None = None,
    sentences: IntArray | None = None,
    targets: IntArray | None = None,
) -> Sequence:
    """Ids as a sequence; by default with positions from 0, in one sentence, without targets."""
    number = len(ids)
    return Sequence(
        ids=ids.astype(np.int32),
        positions=(np.arange(number) if positions is None else positions).astype(np.int32),
        languages=np.full(number, languages, np.int32),
        sentences=np.zeros(number, np.int32) if sentences is None else sentences,
        roles=np.zeros(number, np.int32),
        targets=np.full(number, IGNORE, np.int32) if targets is None else targets,
    )


def apply_mask(sequence: Sequence, masking: Masking, vocabulary: Vocabulary, rng: Rng) -> Sequence:
    """The sequence with masked tokens, which become its targets."""
    units = masking.choose_positions(sequence.ids, vocabulary, rng)
    masked, targets = masking.replace_tokens(sequence.ids, units, vocabulary, rng)
    return replace(sequence, ids=masked, targets=targets)
