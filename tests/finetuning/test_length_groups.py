"""Parts of a batch by length have together the loss and the gradients of the padded batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.head import TaskHead
from isoglot.finetuning.length_groups import length_groups
from isoglot.finetuning.loss import batch_loss
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.tagging import TokenClassificationHead
from isoglot.tasks.examples import LabeledText, MultipleChoice, TaggedSentence
from tests.finetuning.tasks import questions

WORDS = ["ka", "lo", "mitu", "ra", "lumi"]
TEXTS = [" ".join((WORDS * 3)[:number]) for number in (9, 1, 4, 12, 2, 2, 7, 3)]


def batch_of(kind, folder, settings):
    """A head and a batch of windows of many lengths."""
    head: TaskHead[Any, Any]
    examples: list[Any]
    if kind == "classification":
        head = SequenceClassificationHead(folder, settings, ["x", "y"])
        examples = [LabeledText(id="", first=t, label="xy"[len(t) % 2]) for t in TEXTS]
    elif kind == "tagging":
        head = TokenClassificationHead(folder, settings, ["O", "N"])
        words = [text.split() for text in TEXTS]
        examples = [
            TaggedSentence(id="", words=tuple(w), tags=(("O", "N") * 9)[: len(w)]) for w in words
        ]
    elif kind == "choice":
        head = MultipleChoiceHead(folder, settings, [])
        examples = [
            MultipleChoice(id="", premise=t, asks="cause", choices=(t, "ka"), right=len(t) % 2)
            for t in TEXTS
        ]
    else:
        head = QuestionAnsweringHead(folder, settings, [])
        examples = [questions(1, length=number)[0] for number in (8, 20, 12, 8)]
    return head, head.collate(head.windows(examples, training=True))


def gradients(model):
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("max_tokens", [1, 30, 60, 10_000])
@pytest.mark.parametrize("kind", ["classification", "tagging", "choice", "answers"])
def test_the_parts_have_the_loss_and_gradients_of_the_whole(folder, settings, kind, max_tokens):
    head, batch = batch_of(kind, folder, settings)
    model = head.load_model().double().eval()
    whole = batch_loss(model, batch)
    whole.backward()
    expected = gradients(model)
    model.zero_grad()
    parts = length_groups(batch, max_tokens)
    assert (len(parts) > 1) == (max_tokens < 10_000)
    assert (
        sum(part.inputs["attention_mask"].numel() for part in parts)
        <= batch["attention_mask"].numel()
    )
    total = torch.zeros((), dtype=torch.float64)
    for inputs, share in parts:
        loss = batch_loss(model, inputs) * share
        loss.backward()
        total += loss.detach()
    torch.testing.assert_close(total, whole.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["classification", "choice", "answers"])
def test_the_loss_is_the_mean_of_windows_alone(folder, settings, kind):
    head, batch = batch_of(kind, folder, settings)
    model = head.load_model().double().eval()
    losses = []
    for row, mask in enumerate(batch["attention_mask"]):
        end = int(mask.sum(dim=-1).max())
        alone = {name: tensor[row : row + 1] for name, tensor in batch.items()}
        alone = {n: t[..., :end] if t.ndim > 1 else t for n, t in alone.items()}
        losses.append(model(**alone).loss)
    torch.testing.assert_close(
        batch_loss(model, batch), torch.stack(losses).mean(), rtol=1e-12, atol=0
    )


def test_a_part_without_a_labeled_token_is_left_out(folder, settings):
    _, batch = batch_of("tagging", folder, settings)
    batch["labels"][batch["attention_mask"].sum(dim=1) < 8] = -100
    parts = length_groups(batch, 1)
    assert len(parts) < len(batch["labels"])
    assert sum(part.share for part in parts) == pytest.approx(1)
