"""Heads for classification (NLI, paraphrases, reviews) and for multiple choice (COPA, XCOPA).

Two sentences are read as one sequence with a separator; the longer one is truncated where both do
not fit. Multiple choice scores each alternative after the premise and COPA's question: what was the
cause of this, or what happened as a result?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.finetuning.head import Logits, TaskHead, Window, model_inputs
from isoglot.tasks.examples import LabeledText, MultipleChoice
from isoglot.tasks.pretokenized import pretokenize_text
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}
"""COPA's wording, in English for all languages, as in XCOPA's baseline."""


class SequenceClassificationHead(TaskHead[LabeledText, str]):
    """Predicts the label of a sentence or of a pair of sentences.

    Without a pooler the classifier is transformers' for tokens, read at the first token.
    """

    auto_class: ClassVar[Any] = AutoModelForSequenceClassification
    reads_pooler: ClassVar[bool] = True

    @property
    @override
    def model_class(self) -> Any:
        is_linear = self.settings.pooler == "none"
        return AutoModelForTokenClassification if is_linear else self.auto_class

    @staticmethod
    @override
    def labels_of(examples: Sequence[LabeledText]) -> list[str]:
        return sorted({example.label for example in examples})

    @override
    def encode(self, examples: Sequence[LabeledText], *, training: bool) -> Iterator[Window]:
        firsts = [example.first for example in examples]
        seconds = [example.second for example in examples if example.second is not None]
        texts = (firsts, seconds) if seconds else (firsts,)
        encoding = self.tokenize(*texts, truncation="longest_first")
        for number, example in enumerate(examples):
            inputs = model_inputs(encoding, number)
            targets: dict[str, int | list[int]] = {}
            if training:
                label = self.label_ids[example.label]
                others = [IGNORE] * (len(inputs["input_ids"]) - 1)
                targets["labels"] = [label, *others] if self.settings.pooler == "none" else label
            yield Window(example=number, sequences=(inputs,), targets=targets)

    @override
    def decode(
        self, examples: Sequence[LabeledText], windows: Sequence[Window], logits: Sequence[Logits]
    ) -> list[str]:
        # (labels,), or (tokens, labels) without a pooler
        first = (scores if scores.ndim == 1 else scores[0] for (scores,) in logits)
        return [self.labels[int(scores.argmax())] for scores in first]


class MultipleChoiceHead(TaskHead[MultipleChoice, int]):
    """Predicts the index of the correct alternative."""

    auto_class: ClassVar[Any] = AutoModelForMultipleChoice
    reads_pooler: ClassVar[bool] = True

    @staticmethod
    @override
    def labels_of(examples: Sequence[MultipleChoice]) -> list[str]:
        numbers = {len(example.choices) for example in examples}
        if len(numbers) > 1:
            raise CorpusError(
                f"examples have {' or '.join(map(str, sorted(numbers)))} alternatives; fine-tuning "
                "needs the same number in all of them."
            )
        return []

    @override
    def configure(self, config: Any) -> None:
        """Leaves the config alone: the head has one output for any number of alternatives."""

    @override
    def encode(self, examples: Sequence[MultipleChoice], *, training: bool) -> Iterator[Window]:
        questions = {
            asks: pretokenize_text(text, "en", self.pretokenization)
            for asks, text in COPA_QUESTIONS.items()
        }
        encoding = self.tokenize(
            [f"{e.premise} {questions[e.asks]}" for e in examples for _ in e.choices],
            [choice for e in examples for choice in e.choices],
            truncation="longest_first",
        )
        begin = 0
        for number, example in enumerate(examples):
            end = begin + len(example.choices)
            yield Window(
                example=number,
                sequences=tuple(model_inputs(encoding, index) for index in range(begin, end)),
                targets={"labels": example.right} if training else {},
            )
            begin = end

    @override
    def collate(self, windows: Sequence[Window]) -> dict[str, torch.Tensor]:
        """Inputs have the shape (windows, alternatives, tokens)."""
        batch = super().collate(windows)
        return {
            name: value if name == "labels" else value.view(len(windows), -1, value.shape[-1])
            for name, value in batch.items()
        }

    @override
    def decode(
        self,
        examples: Sequence[MultipleChoice],
        windows: Sequence[Window],
        logits: Sequence[Logits],
    ) -> list[int]:
        return [int(scores.argmax()) for (scores,) in logits]
