"""The head for extractive question answering (SQuAD, MLQA, ...): a start and an end token.

A long context is read in windows that overlap by `stride` tokens. A window without the answer, and
a question without an answer, point at the first token. The best spans of all windows compete; where
training had unanswerable questions, the empty answer competes too.

The model reads a pretokenized context; offsets are always those of the original context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from transformers import AutoModelForQuestionAnswering
from typing_extensions import override

from isoglot.finetuning.head import Logits, TaskHead, Window, model_inputs
from isoglot.tasks.examples import Question
from isoglot.tasks.pretokenized import OffsetMap, PretokenizedQuestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

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


class QuestionAnsweringHead(TaskHead[Question, str]):
    """Predicts the text of the answer, empty where there is none."""

    auto_class: ClassVar[Any] = AutoModelForQuestionAnswering
    output_names: ClassVar[tuple[str, ...]] = ("start_logits", "end_logits")

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
        encoding = self.tokenize(
            # at least half of the sequence is left for the context
            [self._truncated(example.question, limit // 2) for example in examples],
            [
                example.split_context
                if isinstance(example, PretokenizedQuestion)
                else example.context
                for example in examples
            ],
            truncation="only_second",
            stride=min(self.settings.stride, limit // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        offset_maps = {
            number: OffsetMap(example.context, example.split_context)
            for number, example in enumerate(examples)
            if isinstance(example, PretokenizedQuestion)
        }
        for index, number in enumerate(encoding["overflow_to_sample_mapping"]):
            in_context = np.array([part == 1 for part in encoding.sequence_ids(index)])
            offsets = np.asarray(encoding["offset_mapping"][index], np.int32)
            if number in offset_maps:
                offsets[in_context] = offset_maps[number].to_original(offsets[in_context])
            offsets[~in_context] = NOT_CONTEXT
            start, end = _answer_tokens(examples[number], offsets)
            yield Window(
                example=number,
                sequences=(model_inputs(encoding, index),),
                targets={"start_positions": start, "end_positions": end} if training else {},
                alignment=None if training else offsets,
            )

    @override
    def decode(
        self, examples: Sequence[Question], windows: Sequence[Window], logits: Sequence[Logits]
    ) -> list[str]:
        answers = []
        null_scores = [float("inf")] * len(examples)
        for window, (start, end) in zip(windows, logits, strict=True):
            null_score = float(start[0] + end[0])
            null_scores[window.example] = min(null_scores[window.example], null_score)
        candidates = self.n_best(len(examples), windows, logits)
        for example, null_score, spans in zip(examples, null_scores, candidates, strict=True):
            if not spans or (NO_ANSWER in self.labels and null_score > spans[0].score):
                answers.append("")
                continue
            # SentencePiece counts the space before a word as part of it
            answers.append(example.context[spans[0].start : spans[0].end].strip())
        return answers

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
        """The first `limit` tokens of a question."""
        offsets = self.tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        return question if len(offsets) <= limit else question[: offsets[limit - 1][1]]


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
