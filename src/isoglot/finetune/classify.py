"""Classification of a sentence or of two: NLI, paraphrases, reviews. One label a sequence.

Two sentences are read together with a separator between them; the longer one is cut where both do
not fit. transformers' own head reads the first token's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transformers import AutoModelForSequenceClassification
from typing_extensions import override

from isoglot.finetune.head import Head, Logits, Piece, model_inputs
from isoglot.tasks.examples import Classified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Classify(Head[Classified, str]):
    """Predicts a label for each example."""

    auto: ClassVar[Any] = AutoModelForSequenceClassification

    @staticmethod
    @override
    def labels_of(examples: Sequence[Classified]) -> list[str]:
        return sorted({example.label for example in examples})

    @override
    def encode(self, examples: Sequence[Classified], *, training: bool) -> Iterator[Piece]:
        firsts = [example.first for example in examples]
        seconds = [example.second for example in examples if example.second is not None]
        texts = (firsts, seconds) if seconds else (firsts,)
        encoded = self.tokens(*texts, truncation="longest_first")
        for number, example in enumerate(examples):
            yield Piece(
                example=number,
                rows=(model_inputs(encoded, number),),
                targets={"labels": self.numbers[example.label]} if training else {},
            )

    @override
    def predict(
        self, examples: Sequence[Classified], pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[str]:
        return [self.labels[int(scores.argmax())] for (scores,) in logits]
