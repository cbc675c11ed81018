"""Training with CUDA graphs gives the weights of training without; lengths are rounded up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isoglot.finetuning.classification import SequenceClassificationHead
from isoglot.finetuning.graphed_step import rounded_lengths
from isoglot.finetuning.loss import batch_loss
from isoglot.finetuning.train import BestEpoch, train
from isoglot.tasks.examples import LabeledText
from tests.finetuning.test_length_groups import batch_of

EXAMPLES = [
    LabeledText(id=str(i), first="kalo mitu " * (i % 4 + 1), label="xy"[i % 2]) for i in range(32)
]


@pytest.mark.parametrize("kind", ["classification", "tagging", "choice", "answers"])
def test_rounded_lengths_leave_the_loss(folder, settings, kind):
    head, batch = batch_of(kind, folder, settings)
    model = head.load_model().double().eval()
    rounded = rounded_lengths(batch, head.tokenizer.pad_token_id)
    length, before = rounded["attention_mask"].shape[-1], batch["attention_mask"].shape[-1]
    assert length == -(-before // 16) * 16
    torch.testing.assert_close(
        batch_loss(model, rounded), batch_loss(model, batch), rtol=1e-12, atol=0
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("accumulation", [1, 2])
def test_weights_are_those_of_training_without_graphs(folder, settings, tmp_path, accumulation):
    found = []
    for cuda_graphs in (False, True):
        chosen = replace(
            settings,
            epochs=3,
            dropout=0.0,
            precision="float32",
            cuda_graphs=cuda_graphs,
            gradient_accumulation_steps=accumulation,
        )
        head = SequenceClassificationHead(folder, chosen, ["x", "y"])
        torch.manual_seed(0)
        model = head.load_model()
        best = BestEpoch(None, tmp_path, higher_is_better=True)
        windows = head.windows(EXAMPLES, training=True)
        train(model, head, windows, [], chosen, seed=0, scratch=tmp_path, best=best)
        found.append({name: weight.cpu() for name, weight in model.state_dict().items()})
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)
