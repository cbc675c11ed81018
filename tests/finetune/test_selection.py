from __future__ import annotations

import pytest
import torch

from isoglot.finetune.selection import Best


@pytest.mark.parametrize(
    ("scores", "higher", "epoch"), [([0.1, 0.5, 0.5, 0.3], True, 1), ([0.4, 0.2, 0.3], False, 1)]
)
def test_the_first_of_the_best_epochs_is_put_back(tmp_path, scores, higher, epoch):
    model = torch.nn.Linear(1, 1)
    coming = iter(scores)
    best = Best(lambda: next(coming), tmp_path, higher_is_better=higher)
    for number in range(len(scores)):
        torch.nn.init.constant_(model.weight, number)
        best.after_epoch(model)
    best.restore(model)
    assert best.epoch == epoch
    assert model.weight.item() == epoch


def test_without_a_judge_the_last_one_stays(tmp_path):
    model = torch.nn.Linear(1, 1)
    best = Best(None, tmp_path, higher_is_better=True)
    torch.nn.init.constant_(model.weight, 3.0)
    best.after_epoch(model)
    best.restore(model)
    assert best.epoch is None
    assert model.weight.item() == 3.0
