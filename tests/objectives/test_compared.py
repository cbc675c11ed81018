"""The loss of a step's examples: parts add up, every candidate counts, doubles count once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st

from isoglot.corpus import Corpus
from isoglot.objectives.compared import Compared, GatheredStep, StepModule, zero_with_gradient
from isoglot.objectives.gathering import StepLayout
from isoglot.pretraining.whole_step import WholeStep
from tests.pretraining.splits import VARIANTS, joined, make_module, one_step, take_step

NAMES = {"moco", "entity", "entailment"}


def gathered(corpus: Corpus, variant: str) -> list[tuple[StepModule, GatheredStep]]:
    """The objectives of a variant that compare examples, and a step of each."""
    module = make_module(corpus, variant)
    names = sorted(NAMES & set(VARIANTS[variant]))
    with torch.no_grad():
        parts = [
            module(batch, whole_step=WholeStep(names=names)) for batch in one_step(corpus, variant)
        ]
    found = []
    for name in names:
        objective = module.objective(name)
        assert isinstance(objective, StepModule)
        found.append((objective, GatheredStep.gather([one.compared[name] for one in parts])))
    return found


def part_of(examples: Compared, own: torch.Tensor) -> Compared:
    """Some examples as those of one process."""
    local = dict(examples.local)
    if "number of known objects" in local:
        counts = local["number of known objects"]
        owners = torch.arange(len(counts)).repeat_interleave(counts)
        known = [local["known objects"][owners == one] for one in own.tolist()]
        local = {
            "known objects": torch.cat([counts[:0], *known]),
            "number of known objects": counts[own],
        }
    fresh = {name: states.detach().clone() for name, states in examples.states.items()}
    return replace(examples, states=fresh, local=local, own=own)


def weight_gradients(module: StepModule, found: Any) -> list[torch.Tensor]:
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    return list(torch.autograd.grad(found.weights_loss, weights))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parts_of_processes_add_up(knowing: Corpus, variant: str) -> None:
    """Losses, metrics and gradients; a process may have no examples."""
    for module, step in gathered(knowing, variant):
        whole = step.loss(module)
        places = torch.randperm(len(step.examples), generator=torch.Generator().manual_seed(0))
        cut = len(places) // 3
        parts = [
            replace(step, examples=part_of(step.examples, own)).loss(module)
            for own in (places[:cut], places[:0], places[cut:])
        ]
        assert sum(one.loss.total for one in parts) == pytest.approx(whole.loss.total.item())
        for name, value in whole.loss.metrics.items():
            assert sum(one.loss.metrics[name] for one in parts) == pytest.approx(value.item())
        for name, gradient in whole.gradients.items():
            torch.testing.assert_close(sum(one.gradients[name] for one in parts), gradient)
        expected = weight_gradients(module, whole)
        for together, alone in zip(
            zip(*(weight_gradients(module, one) for one in parts), strict=True),
            expected,
            strict=True,
        ):
            torch.testing.assert_close(sum(together), alone)


@pytest.mark.parametrize("variant", ["in-batch and MLM", "both sides trained, and a queue"])
def test_every_query_has_a_gradient_at_the_keys_of_all_processes(
    knowing: Corpus, variant: str
) -> None:
    ((module, step),) = gathered(knowing, variant)
    items = step.examples.shared["items"]
    for number in (0, 5, len(items) - 1):
        own = torch.tensor([number])
        found = replace(step, examples=part_of(step.examples, own)).loss(module)
        met = found.gradients["key"].abs().sum(dim=1) > 0
        others = [set(one) for one in items.tolist()]
        first = [items[:, 0].tolist().index(one) for one in items[:, 0].tolist()]
        for place, is_met in enumerate(met.tolist()):
            different = not others[place] & others[number]
            assert is_met == (place == number or (different and first[place] == place))


def test_a_step_that_has_every_pair_twice_has_the_loss_of_one_that_has_it_once(
    knowing: Corpus,
) -> None:
    """Doubles in other micro-batches are recognized: the gradient is the same too."""
    variant, accelerator = "in-batch and MLM", Accelerator(cpu=True)
    batch = joined(one_step(knowing, variant)[:2])
    results = [
        take_step(make_module(knowing, variant), variant, batches, accelerator)
        for batches in ([batch], [batch, batch, batch])
    ]
    (once, left), (again, left_again) = results
    assert again.counts["moco"] == 3 * once.counts["moco"]
    assert again.losses == pytest.approx(once.losses, rel=1e-9)
    for name, gradient in left.items():
        torch.testing.assert_close(left_again[name], gradient, rtol=1e-7, atol=1e-11)


@given(
    lengths=st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=4)
)
def test_rows_are_in_the_order_of_micro_batches_then_of_processes(
    lengths: list[tuple[int, ...]],
) -> None:
    order = [(place, rank) for place in range(3) for rank in range(len(lengths))]
    owners = [at for at in order for _ in range(lengths[at[1]][at[0]])]
    for rank in range(len(lengths)):
        layout = StepLayout(lengths=tuple(lengths), rank=rank)
        assert layout.num_rows == len(owners)
        for place, part in enumerate(layout.own_slices()):
            assert owners[part] == [(place, rank)] * lengths[rank][place]
            assert owners.count((place, rank)) == lengths[rank][place]


def test_a_zero_carries_a_gradient() -> None:
    tensors = [torch.randn(3, requires_grad=True), torch.randn(2, 2, requires_grad=True)]
    wanted = [torch.randn(3), torch.randn(2, 2)]
    zero = zero_with_gradient(tensors, wanted)
    assert zero.item() == 0
    for found, expected in zip(torch.autograd.grad(zero, tensors), wanted, strict=True):
        assert torch.equal(found, expected)
    assert zero_with_gradient([], []).item() == 0
