"""Answers that are spans of a context (SQuAD and its like): a start and an end, by token.

A context that is too long is read in windows that overlap (`stride`); a window without the answer
points at the first token, and so does a question without one. The best spans of all windows
compete; where training had questions without an answer, the empty answer competes too.

A context is read divided into words where the model's text was; places are those of the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from transformers import AutoModelForQuestionAnswering
from typing_extensions import override

from isoglot.finetune.head import Head, Logits, Piece, model_inputs
from isoglot.finetune.in_words import DividedQuestion, Places
from isoglot.tasks.examples import Question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from isoglot.types import IntArray

NOT_CONTEXT = -1
"""The characters of a token that is none of the context's."""
NO_ANSWER = "no answer"
"""The one label there is: it says that some training questions had no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A candidate answer: characters of the context, and the sum of its two logits."""

    start: int
    end: int
    score: float


class Answers(Head[Question, str]):
    """Predicts the text of the answer, empty where there is none."""

    auto: ClassVar[Any] = AutoModelForQuestionAnswering
    outputs: ClassVar[tuple[str, ...]] = ("start_logits", "end_logits")

    @staticmethod
    @override
    def labels_of(examples: Sequence[Question]) -> list[str]:
        return [] if all(example.answers for example in examples) else [NO_ANSWER]

    @override
    def configure(self, config: Any) -> None:
        """Its head has two outputs: start and end."""
        config.num_labels = 2

    @override
    def encode(self, examples: Sequence[Question], *, training: bool) -> Iterator[Piece]:
        room = self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)
        encoded = self.tokens(
            # the context keeps half of the room at least
            [self._shortened(example.question, room // 2) for example in examples],
            [_as_read(example) for example in examples],
            truncation="only_second",
            stride=min(self.settings.stride, room // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        places = {
            number: Places(example.context, example.divided)
            for number, example in enumerate(examples)
            if isinstance(example, DividedQuestion)
        }
        for row, number in enumerate(encoded["overflow_to_sample_mapping"]):
            of_context = np.array([part == 1 for part in encoded.sequence_ids(row)])
            characters = np.asarray(encoded["offset_mapping"][row], np.int32)
            if number in places:
                characters[of_context] = places[number].of(characters[of_context])
            characters[~of_context] = NOT_CONTEXT
            start, end = _places(examples[number], characters)
            yield Piece(
                example=number,
                rows=(model_inputs(encoded, row),),
                targets={"start_positions": start, "end_positions": end} if training else {},
                note=None if training else characters,
            )

    @override
    def predict(
        self, examples: Sequence[Question], pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[str]:
        said = []
        nulls = [float("inf")] * len(examples)
        for piece, (start, end) in zip(pieces, logits, strict=True):
            nulls[piece.example] = min(nulls[piece.example], float(start[0] + end[0]))
        candidates = self.n_best(len(examples), pieces, logits)
        for example, null, spans in zip(examples, nulls, candidates, strict=True):
            refused = NO_ANSWER in self.labels and spans and null > spans[0].score
            best = spans[0] if spans and not refused else Span(start=0, end=0, score=null)
            # SentencePiece counts the space before a word as part of it
            said.append(example.context[best.start : best.end].strip())
        return said

    def n_best(
        self, number: int, pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[list[Span]]:
        """For each of a number of examples, its best spans over all windows, best first."""
        found: list[dict[tuple[int, int], float]] = [{} for _ in range(number)]
        for piece, (start, end) in zip(pieces, logits, strict=True):
            best = found[piece.example]
            for span, score in self._spans(piece.note, start, end):
                best[span] = max(score, best.get(span, score))
        return [
            [
                Span(start=start, end=end, score=score)
                for (start, end), score in sorted(best.items(), key=lambda item: -item[1])
            ][: self.settings.n_best]
            for best in found
        ]

    def _spans(
        self, characters: IntArray, start: torch.Tensor, end: torch.Tensor
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """The spans of one window whose start and end are both among the best."""
        allowed = [place for place, (first, _) in enumerate(characters) if first != NOT_CONTEXT]
        if not allowed:
            return
        most = min(self.settings.n_best, len(allowed))
        starts = [allowed[i] for i in start[allowed].topk(most).indices]
        ends = [allowed[i] for i in end[allowed].topk(most).indices]
        for first in starts:
            for last in ends:
                if first <= last < first + self.settings.max_answer:
                    span = int(characters[first, 0]), int(characters[last, 1])
                    yield span, float(start[first] + end[last])

    def _shortened(self, question: str, room: int) -> str:
        """A question that leaves room for the context."""
        offsets = self.tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        return question if len(offsets) <= room else question[: offsets[room - 1][1]]


def _as_read(example: Question) -> str:
    """The context in the form that the model reads."""
    return example.divided if isinstance(example, DividedQuestion) else example.context


def _places(example: Question, characters: IntArray) -> tuple[int, int]:
    """The tokens that the first answer starts and ends in, or the first token twice."""
    if not example.answers:
        return 0, 0
    answer = example.answers[0]
    start, end = answer.start, answer.start + len(answer.text)
    inside = np.flatnonzero((characters[:, 0] < end) & (characters[:, 1] > start))
    if not len(inside):
        return 0, 0
    first, last = int(inside[0]), int(inside[-1])
    # a window that holds only a part of the answer does not hold it
    whole = characters[first, 0] <= start and characters[last, 1] >= end
    return (first, last) if whole else (0, 0)
