"""Back-translation on the fly: write a sentence from the model's own translation of it.

Reads a draw of the text stream (one sentence each, with another language of the recipe). XLM
(Conneau and Lample, 2019), MASS (Song et al., 2019), MLM-GC (Ai and Fang, 2023) A.2.2. Two passes:

    (a) the model translates y, as it stands: no gradient, no dropout     y  ->  x^
    (b) it learns to write y from what it wrote                           x^ ->  y

so each of the recipe's languages is translated into each of the others it is drawn with. What it
wrote becomes the main row that (b) reads; y in (a) is a side row. A sentence for which nothing was
written teaches nothing and weighs nothing; `empty` is how many those are. `cut` is the share that
did not end before the limit, 1.3·n + 5; `copied` the share that is its own sentence again: a model
that learns to copy instead of translating shows there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.models.writing import WritingConfig, Written
from isoglot.objectives.sides import NUM_EDGES, Decoded, DecodedPrediction, source, target
from isoglot.types import IntArray, Rows, Seq2SeqBatch, Sequence, Text

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import Encoded, Inference, LossSum, ObjectiveModule
    from isoglot.types import Batch, Example, Vocabulary

_FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTranslate(Decoded):
    """Settings of back-translation."""

    name: ClassVar[str] = "backtranslate"
    line: ClassVar[str] = "write a sentence from the model's own translation of it"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "XLM; MASS; MLM-GC A.2.2"
    num_side: ClassVar[int] = 1

    writing: WritingConfig = field(default_factory=WritingConfig)
    """How the translations are written that it learns from."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        written = np.asarray(self.writing.limit(sizes), np.int32)
        columns = [written + NUM_EDGES, sizes + 1, sizes + NUM_EDGES]
        return np.concatenate(columns, axis=1).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes[:, 0] + 1, np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        assert example.other_language >= 0, "the stream was opened with other languages"
        nothing = source(example.ids[:0], example.other_language, vocabulary)
        return (
            replace(nothing, sites={_FIRST: np.zeros(1, np.int64)}),
            target(example.ids, example.language, vocabulary),
            source(example.ids, example.language, vocabulary),
        )

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        if len([code for code, tokens in corpus.tokens_of_languages().items() if tokens]) < 2:
            raise CorpusError(
                f"backtranslate needs text in two languages, and {corpus.folder} has one. Prepare "
                "text of a second one, or leave backtranslate out."
            )
        return BackTranslation(self, end=corpus.vocabulary.sep)


class BackTranslation(DecodedPrediction):
    """Translates before the pass; the loss is the LM head's, of sentences with a translation."""

    def __init__(self, settings: BackTranslate, *, end: int) -> None:
        super().__init__(settings.smoothing)
        self.settings, self._end = settings, end
        self._facts: dict[str, tuple[Tensor, Tensor]] = {}
        self._empty: Tensor | None = None

    @override
    def before_pass(self, name: str, batch: Batch, inference: Inference) -> None:
        assert isinstance(batch, Seq2SeqBatch)
        first = batch.sites.get(name, {}).get(_FIRST)
        self._empty, self._facts = None, {}
        if first is None:
            return  # a micro-batch without sentences for this objective
        rows = first // batch.rows.ids.shape[1]
        sentences = batch.side[name]
        written = inference.write(sentences, batch.rows.languages[rows, 0], self.settings.writing)
        batch.widen(int(written.lengths.max()) + NUM_EDGES)
        _fill(batch.rows, rows, written, self._end)
        empty = torch.zeros(len(batch.rows.ids), dtype=torch.bool, device=rows.device)
        empty[rows] = written.lengths == 0
        self._empty, self._facts = empty, _judged(sentences, written)

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        batch = encoded.batch
        if self._empty is not None:
            assert isinstance(batch, Seq2SeqBatch)
            decoding = batch.decoding
            start, stop = decoding.spans[encoded.name]
            of_site = decoding.positions[start:stop] // decoding.rows.ids.shape[1]
            counts = ~self._empty[decoding.sources[of_site]]
            encoded = replace(
                encoded, losses=encoded.losses * counts, correct=encoded.correct & counts
            )
        found = DecodedPrediction.loss(self, encoded)
        found.ratios.update(self._facts)
        return found


def _fill(rows: Rows, places: Tensor, written: Written, end: int) -> None:
    """Put what was written between the first token and the last of some rows."""
    rows.whole = False
    width, device = rows.ids.shape[1], rows.ids.device
    token = torch.arange(width, device=device)
    last = written.lengths[:, None] + 1
    ids = rows.ids[places]
    ids[:, 1 : 1 + written.ids.shape[1]] = written.ids
    rows.ids[places] = ids.masked_fill(token == last, end)
    there = token <= last
    rows.positions[places] = torch.where(there, token, 0)
    rows.sequences[places] = torch.where(there, 0, -1)
    rows.languages[places] = rows.languages[places, :1].expand(-1, width)


def _judged(sentences: Rows, written: Written) -> dict[str, tuple[Tensor, Tensor]]:
    """(sum, count) of what can be said of translations without knowing what is right."""
    number = torch.full_like(written.lengths[0], len(written.lengths))
    tokens = (sentences.sequences >= 0).sum(dim=1) - NUM_EDGES
    shared = min(written.ids.shape[1], sentences.ids.shape[1] - NUM_EDGES)
    place = torch.arange(shared, device=tokens.device)
    same = written.ids[:, :shared] == sentences.ids[:, 1 : 1 + shared]
    copied = (same | (place >= tokens[:, None])).all(dim=1) & (written.lengths == tokens)
    return {
        "empty": ((written.lengths == 0).sum(), number),
        "cut": (written.cut.sum(), number),
        "copied": (copied.sum(), number),
        "length ratio": (written.lengths.sum(), tokens.sum()),
    }
