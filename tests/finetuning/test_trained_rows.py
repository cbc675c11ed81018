"""Training the occurring rows of the word embeddings gives the weights of training them all."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from isoglot.finetuning.classification import SequenceClassificationHead
from isoglot.finetuning.parameter_groups import parameter_groups
from isoglot.finetuning.trained_rows import TrainedRows, token_ids
from isoglot.tasks.examples import LabeledText

EXAMPLES = [
    LabeledText(id=str(i), first="kalo mitu " * (i % 3 + 1), label="xy"[i % 2]) for i in range(8)
]


def step(model, batch, optimizer):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return float(loss.detach())


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_weights_are_those_of_training_all_rows(folder, settings, decay):
    settings = replace(settings, weight_decay=decay, learning_rate=0.01, layerwise_lr_decay=0.9)
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    plain = head.load_model().double().eval()
    model = copy.deepcopy(plain)
    windows = head.windows(EXAMPLES, training=True)
    batches = [head.collate(windows[n : n + 2]) for n in range(0, 8, 2)]
    optimizer = torch.optim.AdamW(parameter_groups(plain, settings))
    expected = [step(plain, batch, optimizer) for batch in batches]
    before = model.get_input_embeddings().weight
    with TrainedRows(model, token_ids(windows, head.tokenizer.pad_token_id)) as rows:
        assert len(model.get_input_embeddings().weight) < len(before) / 2
        optimizer = torch.optim.AdamW(parameter_groups(model, settings))
        rows.follow(optimizer)
        found = []
        for batch in batches:
            found.append(step(model, batch, optimizer))
            with rows.whole():
                unseen = torch.tensor([[0, len(before) - 2, 2]])
                assert torch.isfinite(model(input_ids=unseen).logits).all()
    assert found == pytest.approx(expected, rel=1e-12)
    assert model.get_input_embeddings().weight is before
    torch.testing.assert_close(model.state_dict(), plain.state_dict(), rtol=1e-10, atol=1e-13)


def test_rows_that_another_module_reads_are_trained_whole(folder, settings):
    model = SequenceClassificationHead(folder, settings, ["x", "y"]).load_model()
    assert TrainedRows.are_possible(model)
    model.second = torch.nn.Embedding.from_pretrained(model.get_input_embeddings().weight)
    model.second.weight = model.get_input_embeddings().weight
    assert not TrainedRows.are_possible(model)
