"""Masked entity prediction: layout, leaks, and Eq. 1, 2 and 5 beside a slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isoglot.errors import RecipeError
from isoglot.objectives.contrast.descriptions import BatchNormHead
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.entity import EntityPrediction
from isoglot.types import IGNORE, Mention
from tests.objectives.described import (
    MASK,
    VOCABULARY,
    WIDTH,
    corpus_of,
    encoded,
    encoder_of,
    states_of_rows,
)
from tests.objectives.laid_out import make_encoder, rows_of, sensitivity


def mention(entity: int = 7) -> Mention:
    return Mention(
        context=np.array([10, 11, 12, 13, 14, 15], np.int32),
        sentences=np.array([0, 0, 0, 1, 1, 1], np.int32),
        start=2,
        end=5,
        language=0,
        entity=entity,
        description=np.array([20, 21], np.int32),
        description_language=1,
    )


def entity_module(size: int = 5, **settings: Any) -> Any:
    torch.manual_seed(0)
    queue = QueueConfig(size=size, start="empty")
    objective = EntityPrediction(queue=queue, projection_size=4, **settings)
    return objective.build_module(encoder_of(), corpus_of()).double()


ENTITIES = [7, 8, 7, 9]
SITES = {"mention": [0, 2, 4, 6], "description": [1, 3, 5, 7]}


def test_every_token_of_the_name_is_a_mask_and_nothing_else_is() -> None:
    context, description = EntityPrediction().build(mention(), VOCABULARY, np.random.default_rng(0))
    assert context.ids.tolist() == [0, 10, 11, MASK, MASK, MASK, 15, 2]
    assert context.markers["mention"].tolist() == [3]
    assert context.sentences.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert (context.targets == IGNORE).all(), "the name itself is never predicted"
    assert description.ids.tolist() == [0, 20, 21, 2]
    assert description.markers["description"].tolist() == [0]
    assert description.labels["entity"].tolist() == [7]
    assert set(context.languages) == {0}
    assert set(description.languages) == {1}


def test_the_name_leaks_nowhere() -> None:
    """By gradient: the query sees its context, not the name and not the description."""
    encoder = make_encoder(size=60)
    sequences = EntityPrediction().build(mention(), VOCABULARY, np.random.default_rng(0))
    rows, starts = rows_of(sequences)
    site = starts[0] + int(sequences[0].markers["mention"][0])
    seen = sensitivity(encoder, rows, site) > 0
    assert seen[: len(sequences[0])].all()
    assert not seen[starts[1] :].any()
    assert not np.isin(mention().context[2:5], rows.ids[0, :8].numpy()).any()


def naive_entity(module: Any, states: torch.Tensor, queue: list[tuple[torch.Tensor, int]]) -> Any:
    """Eq. 1, 2 and 5 query by query."""
    flat = states.reshape(-1, WIDTH)

    def head(which: Any, vector: torch.Tensor) -> torch.Tensor:
        first, second = which.linear()
        return second.weight @ (first.weight @ vector).relu()

    keys = [head(module.key_head, flat[place]) for place in SITES["description"]]
    total = torch.zeros((), dtype=torch.float64)
    for number, place in enumerate(SITES["mention"]):
        query = head(module.query_head, flat[place])
        others = [
            key
            for key, entity in [*zip(keys, ENTITIES, strict=True), *queue]
            if entity != ENTITIES[number]
        ]
        scores = torch.stack([query @ key for key in [keys[number], *others]])
        total = total - scores.log_softmax(dim=0)[0]
    return total


def test_the_loss_and_all_gradients_are_those_of_the_equations() -> None:
    module, states = entity_module(), states_of_rows()
    old = torch.randn(3, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor([[8], [30], [7]]))
    given = encoded("entity", states, SITES, {"entity": ENTITIES})
    total = module.loss(given).total
    expected = naive_entity(module, states, list(zip(old, [8, 30, 7], strict=True)))
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)
    weights = [states, *module.parameters()]
    for found, wanted in zip(
        torch.autograd.grad(total, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_accuracy_counts_queries_whose_key_is_the_best_candidate(scale: float) -> None:
    module, states = entity_module(), states_of_rows()
    old = scale * torch.randn(3, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor([[8], [30], [7]]))
    found = module.loss(encoded("entity", states, SITES, {"entity": ENTITIES})).metrics["accuracy"]
    flat = states.detach().reshape(-1, WIDTH)
    queries = module.query_head(flat[SITES["mention"]]).detach()
    keys = module.key_head(flat[SITES["description"]]).detach()
    right = 0
    for n, query in enumerate(queries):
        candidates = [*zip(keys, ENTITIES, strict=True), *zip(old, [8, 30, 7], strict=True)]
        rivals = [float(query @ key) for key, entity in candidates if entity != ENTITIES[n]]
        right += all(float(query @ keys[n]) >= rival for rival in rivals)
    assert float(found) == right


def test_descriptions_may_be_averaged() -> None:
    """Rows of two sequences of two tokens each: only the keys change."""
    module, states = entity_module(pooling="mean"), states_of_rows()
    sites = {"mention": [0, 4], "description": [2, 6]}
    found = module.loss(encoded("entity", states, sites, {"entity": [7, 9]})).total
    means = states.detach().clone()
    means[:, 2] = states.detach()[:, 2:].mean(dim=1)
    expected = entity_module().loss(encoded("entity", means, sites, {"entity": [7, 9]})).total
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_keys_get_gradient_and_queue_entries_none() -> None:
    module, states = entity_module(), states_of_rows()
    module.queue.enqueue(torch.randn(2, 4, dtype=torch.float64), torch.tensor([[30], [31]]))
    module.loss(encoded("entity", states, SITES, {"entity": ENTITIES})).total.backward()
    assert states.grad is not None
    assert (states.grad.reshape(8, WIDTH)[SITES["description"]].abs().sum(dim=1) > 0).all()
    assert not module.queue.entries.requires_grad
    module.after_step(taken=True)
    assert int(module.queue.num_filled) == 5, "two of old and four new ones, in five places"
    assert not module.queue.entries.requires_grad


def test_a_mentions_own_entity_in_the_queue_is_no_negative() -> None:
    states = states_of_rows()
    losses = []
    for entity in (7, 30):
        module = entity_module()
        module.queue.enqueue(10 * torch.ones(1, 4, dtype=torch.float64), torch.tensor([[entity]]))
        given = encoded(
            "entity",
            states,
            {"mention": [0], "description": [1]},
            {"entity": [7]},
        )
        losses.append(float(module.loss(given).total.detach()))
    assert losses[0] == 0, "there is no other candidate"
    assert losses[1] != 0


def test_a_micro_batch_without_mentions_gives_nothing_and_still_takes_part() -> None:
    module, states = entity_module(), states_of_rows()
    none = encoded("entity", states, {}, {}, states.sum().reshape(1)[:0])
    assert module.loss(none).total == 0
    module.after_step(taken=True)
    assert int(module.queue.num_filled) == 0


def test_the_released_variant_hides_more_and_predicts_it() -> None:
    objective = EntityPrediction(variant="released")
    sizes = np.array([[6, 2], [40, 2]], np.int32)
    assert objective.max_targets(sizes).tolist() == [1, 6]
    assert EntityPrediction().max_targets(sizes).tolist() == [0, 0]
    context, description = objective.build(mention(), VOCABULARY, np.random.default_rng(0))
    assert (context.ids[3:6] == MASK).all()
    assert (context.targets != IGNORE).sum() == 1
    assert (context.targets[3:6] == IGNORE).all()
    assert (description.targets == IGNORE).all()


def test_the_released_variant_normalizes_keeps_the_same_entity_and_looks_both_ways() -> None:
    module, states = entity_module(variant="released"), states_of_rows()
    old = torch.randn(2, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor([[7], [30]]))
    tokens = torch.tensor([1.0, 3.0], dtype=torch.float64)
    given = encoded("entity", states, SITES, {"entity": ENTITIES}, tokens)
    result = module.loss(given)
    flat = states.reshape(-1, WIDTH)

    def head(which: BatchNormHead, places: list[int]) -> torch.Tensor:
        def norm(v: torch.Tensor) -> torch.Tensor:
            return (v - v.mean(0)) / (v.var(0, unbiased=False) + 1e-12).sqrt()

        hidden = norm(flat[places] @ which.first.weight.T)
        hidden = hidden * which.first_norm.weight + which.first_norm.bias
        return norm(hidden.relu() @ which.second.weight.T)

    queries, keys = (
        head(module.query_head, SITES["mention"]),
        head(module.key_head, SITES["description"]),
    )
    expected, right = 4 * tokens.mean(), 0
    for own, other in ((queries, keys), (keys, queries)):
        for n in range(4):
            rest = [v for side in (own, other) for i, v in enumerate(side) if i != n]
            scores = torch.stack([own[n] @ v for v in [other[n], *rest, *old]])
            expected = expected - scores.log_softmax(dim=0)[0] / 2
            right += int(scores.argmax() == 0)
    torch.testing.assert_close(result.total, expected, rtol=1e-9, atol=1e-9)
    assert 0 < right < 8
    assert float(result.metrics["accuracy"]) == right / 2, "the mean of both directions"


def test_a_head_with_batch_norm_takes_a_single_vector() -> None:
    head = BatchNormHead(WIDTH, 4).double()
    many = head(torch.randn(8, WIDTH, dtype=torch.float64))
    assert many.mean(dim=0).abs().max() < 1e-9
    assert head(torch.randn(1, WIDTH, dtype=torch.float64)).shape == (1, 4)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: EntityPrediction(queue=QueueConfig(start="filled")), "must be random or empty"),
        (lambda: EntityPrediction(temperature=0.0), "temperature must be"),
        (lambda: EntityPrediction(layer=3).build_module(encoder_of(), corpus_of()), "from 0 to 2"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, fault: str) -> None:
    with pytest.raises(RecipeError, match=fault):
        make()
