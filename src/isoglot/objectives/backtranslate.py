"""Back-translation on the fly: generate a sentence from the model's own translation of it.

Reads a draw of the text stream (one sentence each, with a target language). XLM
(Conneau and Lample, 2019), MASS (Song et al., 2019), MLM-GC (Ai and Fang, 2023) A.2.2. Two passes:

    (a) the model translates y, without gradient and dropout     y  ->  x^
    (b) it learns to generate y from its translation             x^ ->  y

The translation becomes the main row that (b) reads; y in (a) is an auxiliary row. A sentence with
an empty translation has no loss; the metric `empty` is their share. `cut` is the share of
translations that did not end before the limit, 1.3·n + 5; `copied` the share that equals the
sentence: a model that copies instead of translating shows there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.models.config import GenerationConfig
from isoglot.objectives.seq2seq import (
    NUM_SPECIAL,
    DecoderPrediction,
    Seq2SeqObjective,
    build_source,
    build_target,
)
from isoglot.types import IntArray, Rows, Seq2SeqBatch, Sequence, Text

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.models.seq2seq import Generated
    from isoglot.objectives.base import ForwardResult, Inference, LossSum, ObjectiveModule
    from isoglot.types import Batch, Example, Rng, Vocabulary

_FIRST = "first"
_STATISTICS = ("empty", "cut", "copied", "length_ratio")
"""The statistics of translations, in the order in which processes add them up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTranslate(Seq2SeqObjective):
    """Settings of back-translation."""

    name: ClassVar[str] = "backtranslate"
    summary: ClassVar[str] = "translate the model's own translation of a sentence back"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "XLM; MASS; MLM-GC A.2.2"
    num_aux_sequences: ClassVar[int] = 1

    generation: GenerationConfig = field(default_factory=GenerationConfig)
    """How the translations are generated."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        generated = np.asarray(self.generation.max_lengths(sizes), np.int32)
        columns = [generated + NUM_SPECIAL, sizes + 1, sizes + NUM_SPECIAL]
        return np.concatenate(columns, axis=1).astype(np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        assert example.target_language >= 0, "the stream draws target languages"
        nothing = build_source(example.ids[:0], example.target_language, vocabulary)
        return (
            replace(nothing, markers={_FIRST: np.zeros(1, np.int64)}),
            build_target(example.ids, example.language, vocabulary),
            build_source(example.ids, example.language, vocabulary),
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        if len([code for code, tokens in corpus.tokens_of_languages().items() if tokens]) < 2:
            raise CorpusError(
                f"backtranslate needs text in two languages, and {corpus.folder} has one. Prepare "
                "text of a second one, or remove backtranslate."
            )
        return BackTranslateModule(self, end=corpus.vocabulary.sep)


class BackTranslateModule(DecoderPrediction):
    """Translates before the forward pass; the loss is of sentences with a translation."""

    def __init__(self, settings: BackTranslate, *, end: int) -> None:
        super().__init__(settings.label_smoothing)
        self.settings, self._end = settings, end
        self._ratios: dict[str, tuple[Tensor, Tensor]] = {}
        self._empty: Tensor | None = None

    @override
    def before_forward(self, name: str, batch: Batch, inference: Inference) -> None:
        assert isinstance(batch, Seq2SeqBatch)
        with inference.gathered():  # processes generate sentences of other lengths, or none
            self._translate(name, batch, inference)

    def _translate(self, name: str, batch: Seq2SeqBatch, inference: Inference) -> None:
        first = batch.markers.get(name, {}).get(_FIRST)
        if first is None:  # a micro-batch without sentences for this objective
            zero = batch.rows.ids.new_zeros(())
            self._empty, self._ratios = None, dict.fromkeys(_STATISTICS, (zero, zero))
            return
        rows = first // batch.rows.ids.shape[1]
        sentences = batch.aux_rows[name]
        generated = inference.generate(
            sentences, batch.rows.languages[rows, 0], self.settings.generation
        )
        batch.widen(int(generated.lengths.max()) + NUM_SPECIAL)
        _write_translations(batch.rows, rows, generated, self._end)
        empty = torch.zeros(len(batch.rows.ids), dtype=torch.bool, device=rows.device)
        empty[rows] = generated.lengths == 0
        self._empty, self._ratios = empty, _statistics(sentences, generated)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        batch = result.batch
        if self._empty is not None:
            assert isinstance(batch, Seq2SeqBatch)
            decoding = batch.decoding
            start, stop = decoding.target_slices[result.name]
            row_of = decoding.target_positions[start:stop] // decoding.rows.ids.shape[1]
            counts = ~self._empty[decoding.source_rows[row_of]]
            result = replace(
                result, target_losses=result.target_losses * counts, correct=result.correct & counts
            )
        found = DecoderPrediction.loss(self, result)
        found.ratios.update(self._ratios)
        return found


def _write_translations(rows: Rows, places: Tensor, generated: Generated, end: int) -> None:
    """Write translations between the first token and the end of some rows."""
    rows.unmasked = False
    width, device = rows.ids.shape[1], rows.ids.device
    token = torch.arange(width, device=device)
    last = generated.lengths[:, None] + 1
    ids = rows.ids[places]
    ids[:, 1 : 1 + generated.ids.shape[1]] = generated.ids
    rows.ids[places] = ids.masked_fill(token == last, end)
    there = token <= last
    rows.positions[places] = torch.where(there, token, 0)
    rows.sequences[places] = torch.where(there, 0, -1)
    rows.languages[places] = rows.languages[places, :1].expand(-1, width)


def _statistics(sentences: Rows, generated: Generated) -> dict[str, tuple[Tensor, Tensor]]:
    """(sum, count) of statistics of translations that need no reference."""
    number = torch.full_like(generated.lengths[0], len(generated.lengths))
    tokens = (sentences.sequences >= 0).sum(dim=1) - NUM_SPECIAL
    shared = min(generated.ids.shape[1], sentences.ids.shape[1] - NUM_SPECIAL)
    place = torch.arange(shared, device=tokens.device)
    same = generated.ids[:, :shared] == sentences.ids[:, 1 : 1 + shared]
    copied = (same | (place >= tokens[:, None])).all(dim=1) & (generated.lengths == tokens)
    found = (
        ((generated.lengths == 0).sum(), number),
        (generated.truncated.sum(), number),
        (copied.sum(), number),
        (generated.lengths.sum(), tokens.sum()),
    )
    return dict(zip(_STATISTICS, found, strict=True))
