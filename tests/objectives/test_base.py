"""The loss of an objective that has nothing to predict."""

from typing import Any

import torch

from isoglot.objectives.base import ForwardResult


def test_an_empty_micro_batch_has_the_metrics_of_the_others_in_their_order():
    losses = torch.ones(2, requires_grad=True)
    batch: Any = None
    result = ForwardResult(
        batch=batch,
        name="mlm",
        hidden_states=torch.zeros(1, 2, 3),
        target_losses=losses,
        correct=torch.zeros(2),
    )
    assert list(result.empty_loss().metrics) == ["accuracy"]
    found = result.empty_loss("cosine", "chance")
    assert list(found.metrics) == ["cosine", "chance"]
    both = result.empty_loss("cosine", ratios=("seen",))
    assert (list(both.metrics), list(both.ratios)) == (["cosine"], ["seen"])
    assert [float(number) for number in both.ratios["seen"]] == [0, 0]
    assert not result.empty_loss(ratios=("seen",)).metrics
    assert found.total.item() == 0
    (gradient,) = torch.autograd.grad(found.total, losses)
    assert not gradient.any()
