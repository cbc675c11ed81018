"""The right one of several alternatives to a premise (XCOPA). One score an alternative.

An alternative is read after the premise and the question that COPA asks of it: what was the cause,
what happened as a result?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transformers import AutoModelForMultipleChoice
from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.finetune.head import Head, Logits, Piece, model_inputs
from isoglot.finetune.in_words import divided
from isoglot.tasks.examples import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

QUESTIONS = {
    "cause": "What was the cause of this?",
    "effect": "What happened as a result?",
}
"""COPA's own wording, in English for all languages, as in XCOPA's baseline."""


class Choose(Head[Choice, int]):
    """Predicts the index of the right alternative."""

    auto: ClassVar[Any] = AutoModelForMultipleChoice

    @staticmethod
    @override
    def labels_of(examples: Sequence[Choice]) -> list[str]:
        numbers = {len(example.choices) for example in examples}
        if len(numbers) > 1:
            raise CorpusError(
                f"examples have {' or '.join(map(str, sorted(numbers)))} alternatives; fine-tuning "
                "needs the same number in all of them."
            )
        return []

    @override
    def configure(self, config: Any) -> None:
        """Its head has one output, whatever the number of alternatives."""

    @override
    def encode(self, examples: Sequence[Choice], *, training: bool) -> Iterator[Piece]:
        questions = {asks: divided(text, "en", self.words) for asks, text in QUESTIONS.items()}
        asked = [
            (f"{example.premise} {questions[example.asks]}", choice)
            for example in examples
            for choice in example.choices
        ]
        encoded = self.tokens(
            [premise for premise, _ in asked],
            [choice for _, choice in asked],
            truncation="longest_first",
        )
        begin = 0
        for number, example in enumerate(examples):
            end = begin + len(example.choices)
            yield Piece(
                example=number,
                rows=tuple(model_inputs(encoded, row) for row in range(begin, end)),
                targets={"labels": example.right} if training else {},
            )
            begin = end

    @override
    def collate(self, pieces: Sequence[Piece]) -> dict[str, torch.Tensor]:
        """Inputs are (pieces, alternatives, tokens)."""
        batch = super().collate(pieces)
        return {
            name: value if name == "labels" else value.view(len(pieces), -1, value.shape[-1])
            for name, value in batch.items()
        }

    @override
    def predict(
        self, examples: Sequence[Choice], pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[int]:
        return [int(scores.argmax()) for (scores,) in logits]
