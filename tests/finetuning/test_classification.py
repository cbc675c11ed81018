from __future__ import annotations

import pytest
import torch

from isoglot.errors import CorpusError
from isoglot.finetuning.classification import MultipleChoiceHead
from isoglot.tasks.examples import MultipleChoice


def choice(name: str, *choices: str, right: int = 0, asks: str = "cause") -> MultipleChoice:
    return MultipleChoice(id=name, premise="kalo mitu", asks=asks, choices=choices, right=right)


EXAMPLES = [choice("0", "ka", "lo mi tu"), choice("1", "se", "ra", right=1, asks="effect")]


def test_every_alternative_is_read_after_the_premise(folder, settings):
    head = MultipleChoiceHead(folder, settings, [])
    batch = head.collate(head.windows(EXAMPLES, training=True))
    assert batch["input_ids"].shape[:2] == (2, 2)
    assert batch["labels"].tolist() == [0, 1]
    texts = [head.tokenizer.decode(row) for row in batch["input_ids"].flatten(0, 1)]
    assert all("kalo mitu" in text for text in texts)


def test_the_model_scores_alternatives_and_the_highest_is_said(folder, settings):
    head = MultipleChoiceHead(folder, settings, [])
    pieces = head.windows(EXAMPLES, training=True)
    torch.manual_seed(0)
    said = head.load_model()(**head.collate(pieces))
    assert said.logits.shape == (2, 2)
    assert said.loss.isfinite()
    assert head.decode(EXAMPLES, pieces, [(row,) for row in torch.eye(2)]) == [0, 1]


def test_examples_have_the_same_number_of_alternatives():
    with pytest.raises(CorpusError, match="2 or 3 alternatives"):
        MultipleChoiceHead.labels_of([*EXAMPLES, choice("2", "a", "b", "c")])
