"""The head for extractive question answering (SQuAD, MLQA, ...): a start and an end token.

A long context is read in windows that overlap by `stride` tokens. A window without the answer, and
a question without an answer, point at the first token. The best spans of all windows compete; where
training had unanswerable questions, the empty answer competes too, with its lowest score of all
windows: it wins if it exceeds the best span's by more than `null_threshold`.

The model reads a pretokenized context; offsets are always those of the original context.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from transformers import AutoModelForQuestionAnswering
from typing_extensions import override

from isoglot.corpus.tokenization.byte_pieces import is_byte_piece, split_byte_runs
from isoglot.finetuning.head import Logits, TaskHead, Window, model_inputs
from isoglot.tasks.examples import PredictedAnswer, Question
from isoglot.tasks.pretokenized import OffsetMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import torch

    from isoglot.finetuning.settings import FinetuneConfig
    from isoglot.types import IntArray

NOT_CONTEXT = -1
"""Character offset of tokens outside the context."""
NO_ANSWER = "no answer"
"""The only label: some training questions had no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSpan:
    """A candidate answer: character offsets in the context, and the sum of its two logits."""

    start: int
    end: int
    score: float


class QuestionAnsweringHead(TaskHead[Question, PredictedAnswer]):
    """Predicts the text of the answer, empty where there is none."""

    auto_class: ClassVar[Any] = AutoModelForQuestionAnswering
    output_names: ClassVar[tuple[str, ...]] = ("start_logits", "end_logits")

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        super().__init__(folder, settings, labels)
        self._has_byte_pieces = any(map(is_byte_piece, self.tokenizer.get_vocab()))

    @staticmethod
    @override
    def labels_of(examples: Sequence[Question]) -> list[str]:
        return [] if all(example.answers for example in examples) else [NO_ANSWER]

    @override
    def configure(self, config: Any) -> None:
        """The head has two outputs: start and end."""
        config.num_labels = 2

    @override
    def encode(self, examples: Sequence[Question], *, training: bool) -> Iterator[Window]:
        limit = self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)
        contexts = [
            example.context if example.split_context is None else example.split_context
            for example in examples
        ]
        stride = min(self.settings.stride, limit // 4)
        encoding = self.tokenize(
            # at least half of the sequence is left for the context
            [self._truncated(example.question, limit // 2) for example in examples],
            contexts,
            truncation="only_second",
            stride=stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        numbered = enumerate(encoding["overflow_to_sample_mapping"])
        for number, group in groupby(numbered, key=itemgetter(1)):
            indices = [index for index, _ in group]
            example = examples[number]
            all_offsets = self._offsets(encoding, indices, example, contexts[number], stride)
            for index, offsets in zip(indices, all_offsets, strict=True):
                start, end = _answer_tokens(example, offsets)
                yield Window(
                    example=number,
                    sequences=(model_inputs(encoding, index),),
                    targets={"start_positions": start, "end_positions": end} if training else {},
                    alignment=None if training else offsets,
                )

    def _offsets(
        self, encoding: Any, indices: Sequence[int], example: Question, context: str, stride: int
    ) -> list[IntArray]:
        """For each window of a context, its tokens' offsets in the original context."""
        inside = [
            np.array([part == 1 for part in encoding.sequence_ids(index)]) for index in indices
        ]
        found = [np.asarray(encoding["offset_mapping"][index], np.int32) for index in indices]
        if self._has_byte_pieces and any(
            is_byte_piece(token) for index in indices for token in encoding.tokens(index)
        ):
            exact = self._exact_offsets(context)
            step = int(inside[0].sum()) - stride
            for window, (offsets, own) in enumerate(zip(found, inside, strict=True)):
                offsets[own] = exact[window * step :][: int(own.sum())]
        original = None
        if example.split_context is not None:
            original = OffsetMap(example.context, example.split_context)
        for offsets, own in zip(found, inside, strict=True):
            if original is not None:
                offsets[own] = original.to_original(offsets[own])
            offsets[~own] = NOT_CONTEXT
        return found

    def _exact_offsets(self, text: str) -> IntArray:
        """The offsets of all tokens of a text, each byte piece with those of its character."""
        alone = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        spans = alone["offset_mapping"]
        if self._has_byte_pieces:
            spans = split_byte_runs(alone.tokens(), spans, text)
        return np.array(spans, np.int32).reshape(-1, 2)

    @override
    def decode(
        self, examples: Sequence[Question], windows: Sequence[Window], logits: Sequence[Logits]
    ) -> list[PredictedAnswer]:
        null_scores = [math.inf] * len(examples)
        for window, (start, end) in zip(windows, logits, strict=True):
            null_score = float(start[0] + end[0])
            null_scores[window.example] = min(null_scores[window.example], null_score)
        candidates = self.n_best(len(examples), windows, logits)
        return [
            self._predicted(*of_example)
            for of_example in zip(examples, null_scores, candidates, strict=True)
        ]

    def _predicted(
        self, example: Question, null_score: float, spans: Sequence[AnswerSpan]
    ) -> PredictedAnswer:
        if not spans:
            return PredictedAnswer("", best="", start=0, end=0, null_odds=math.inf)
        first = spans[0]
        # SentencePiece counts the space before a word as part of it
        text = example.context[first.start : first.end]
        start = first.end - len(text.lstrip())
        best, null_odds = text.strip(), null_score - first.score
        is_null = NO_ANSWER in self.labels and null_odds > self.settings.null_threshold
        return PredictedAnswer(
            "" if is_null else best,
            best=best,
            start=start,
            end=start + len(best),
            null_odds=null_odds,
        )

    def n_best(
        self, num_examples: int, windows: Sequence[Window], logits: Sequence[Logits]
    ) -> list[list[AnswerSpan]]:
        """For each example, its best spans over all windows, best first."""
        scores: list[dict[tuple[int, int], float]] = [{} for _ in range(num_examples)]
        for window, (start, end) in zip(windows, logits, strict=True):
            best = scores[window.example]
            for span, score in self._spans(window.alignment, start, end):
                best[span] = max(score, best.get(span, score))
        return [
            [
                AnswerSpan(start=start, end=end, score=score)
                for (start, end), score in sorted(best.items(), key=lambda item: -item[1])
            ][: self.settings.n_best]
            for best in scores
        ]

    def _spans(
        self, offsets: IntArray, start: torch.Tensor, end: torch.Tensor
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """The spans of one window whose start and end are both among the best."""
        allowed = [token for token, (first, _) in enumerate(offsets) if first != NOT_CONTEXT]
        if not allowed:
            return
        number = min(self.settings.n_best, len(allowed))
        starts = [allowed[i] for i in start[allowed].topk(number).indices]
        ends = [allowed[i] for i in end[allowed].topk(number).indices]
        for first in starts:
            for last in ends:
                if first <= last < first + self.settings.max_answer_tokens:
                    span = int(offsets[first, 0]), int(offsets[last, 1])
                    yield span, float(start[first] + end[last])

    def _truncated(self, question: str, limit: int) -> str:
        """A question without the characters after its first `limit` tokens."""
        while True:
            offsets = self._exact_offsets(question)
            if len(offsets) <= limit:
                return question
            # the end of a text may be split into more tokens than before
            question = question[: min(int(offsets[limit - 1, 1]), len(question) - 1)]


def _answer_tokens(example: Question, offsets: IntArray) -> tuple[int, int]:
    """The first and last token of the first answer; (0, 0) where the window does not contain it."""
    if not example.answers:
        return 0, 0
    answer = example.answers[0]
    start, end = answer.start, answer.start + len(answer.text)
    inside = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > start))
    if not len(inside):
        return 0, 0
    first, last = int(inside[0]), int(inside[-1])
    # a window with only a part of the answer does not contain it
    is_whole = offsets[first, 0] <= start and offsets[last, 1] >= end
    return (first, last) if is_whole else (0, 0)
