"""Masked entity prediction and object entailment, against slow versions in float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isoglot.errors import RecipeError
from isoglot.objectives.base import ForwardResult
from isoglot.objectives.contrast.descriptions import BatchNormHead
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.entailment import ObjectEntailment, known_among
from isoglot.objectives.entity import EntityPrediction
from isoglot.types import IGNORE, Mention, TripleExample, Vocabulary
from tests.objectives.laid_out import make_encoder, rows_of, sensitivity

MASK = 4
VOCABULARY = Vocabulary(
    size=60, cls=0, sep=2, pad=1, mask=MASK, special=(0, 1, 2, 3, 4), word_starts=np.ones(60, bool)
)
WIDTH = 6


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


def statement() -> TripleExample:
    return TripleExample(
        subject=np.array([20, 21], np.int32),
        subject_language=0,
        relation=2,
        object=np.array([30, 31, 32], np.int32),
        object_language=1,
        object_entity=5,
        known_objects=np.array([3, 5]),
    )


def encoder_of(width: int = WIDTH) -> Any:
    config = SimpleNamespace(num_hidden_layers=2, initializer_range=0.5)
    return SimpleNamespace(hidden_size=width, model=SimpleNamespace(config=config))


def corpus_of(relations: int = 3) -> Any:
    manifest = SimpleNamespace(relations=relations)
    return SimpleNamespace(knowledge=SimpleNamespace(manifest=manifest, folder="store"))


def encoded(
    name: str, states: torch.Tensor, sites: Any, labels: Any, losses: Any = None
) -> ForwardResult:
    batch: Any = SimpleNamespace(
        markers={name: {n: torch.tensor(v) for n, v in sites.items()}} if sites else {},
        labels={name: {n: torch.tensor(v) for n, v in labels.items()}},
        rows=SimpleNamespace(sequences=torch.arange(2).repeat(2, 2).sort().values),
    )
    losses = torch.zeros(0, dtype=torch.float64) if losses is None else losses
    return ForwardResult(
        batch=batch, name=name, hidden_states=states, target_losses=losses, correct=losses
    )


def entity_module(size: int = 5, **settings: Any) -> Any:
    torch.manual_seed(0)
    queue = QueueConfig(size=size, start="empty")
    objective = EntityPrediction(queue=queue, projection_size=4, **settings)
    return objective.build_module(encoder_of(), corpus_of()).double()


def entity_states() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 4, WIDTH, dtype=torch.float64, requires_grad=True)


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
    module, states = entity_module(), entity_states()
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


def test_descriptions_may_be_averaged() -> None:
    """Rows of two sequences of two tokens each: only the keys change."""
    module, states = entity_module(pooling="mean"), entity_states()
    sites = {"mention": [0, 4], "description": [2, 6]}
    found = module.loss(encoded("entity", states, sites, {"entity": [7, 9]})).total
    means = states.detach().clone()
    means[:, 2] = states.detach()[:, 2:].mean(dim=1)
    expected = entity_module().loss(encoded("entity", means, sites, {"entity": [7, 9]})).total
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_keys_get_gradient_and_queue_entries_none() -> None:
    module, states = entity_module(), entity_states()
    module.queue.enqueue(torch.randn(2, 4, dtype=torch.float64), torch.tensor([[30], [31]]))
    module.loss(encoded("entity", states, SITES, {"entity": ENTITIES})).total.backward()
    assert states.grad is not None
    assert (states.grad.reshape(8, WIDTH)[SITES["description"]].abs().sum(dim=1) > 0).all()
    assert not module.queue.entries.requires_grad
    module.after_step(taken=True)
    assert int(module.queue.num_filled) == 5, "two of old and four new ones, in five places"
    assert not module.queue.entries.requires_grad


def test_a_mentions_own_entity_in_the_queue_is_no_negative() -> None:
    states = entity_states()
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
    module, states = entity_module(), entity_states()
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


def test_the_released_variant_normalises_keeps_the_same_entity_and_looks_both_ways() -> None:
    module, states = entity_module(variant="released"), entity_states()
    old = torch.randn(2, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor([[7], [30]]))
    tokens = torch.tensor([1.0, 3.0], dtype=torch.float64)
    given = encoded("entity", states, SITES, {"entity": ENTITIES}, tokens)
    found = module.loss(given).total
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
    expected = 4 * tokens.mean()
    for own, other in ((queries, keys), (keys, queries)):
        for n in range(4):
            rest = [v for side in (own, other) for i, v in enumerate(side) if i != n]
            scores = torch.stack([own[n] @ v for v in [other[n], *rest, *old]])
            expected = expected - scores.log_softmax(dim=0)[0] / 2
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_a_head_with_batch_norm_takes_a_single_vector() -> None:
    head = BatchNormHead(WIDTH, 4).double()
    many = head(torch.randn(8, WIDTH, dtype=torch.float64))
    assert many.mean(dim=0).abs().max() < 1e-9
    assert head(torch.randn(1, WIDTH, dtype=torch.float64)).shape == (1, 4)


def entailment_module(relations: int = 3, **settings: Any) -> Any:
    torch.manual_seed(0)
    queue = QueueConfig(size=5, start="empty")
    objective = ObjectEntailment(queue=queue, projection_size=4, **settings)
    return objective.build_module(encoder_of(), corpus_of(relations)).double()


TRIPLES = {
    "relation": [2, 0, 1],
    "entity": [5, 6, 8],
    "known objects": [3, 5, 6, 8, 40],
    "number of known objects": [2, 1, 2],
}
KNOWN = [{3, 5}, {6}, {8, 40}]
OLD = [3, 8, 30, 40]
ENDS = {"subject": [0, 2, 4], "object": [1, 3, 5]}


def test_an_example_becomes_two_descriptions() -> None:
    subject, thing = ObjectEntailment().build(statement(), VOCABULARY, np.random.default_rng(0))
    assert subject.ids.tolist() == [0, 20, 21, 2]
    assert thing.ids.tolist() == [0, 30, 31, 32, 2]
    assert {n: v.tolist() for n, v in subject.labels.items()} == {
        "relation": [2],
        "entity": [5],
        "known objects": [3, 5],
        "number of known objects": [2],
    }
    assert (set(subject.languages), set(thing.languages)) == ({0}, {1})


@pytest.mark.parametrize("allow_false_negatives", [False, True])
def test_entailment_is_the_equations_too(allow_false_negatives: bool) -> None:
    module, states = entailment_module(allow_false_negatives=allow_false_negatives), entity_states()
    old = torch.randn(4, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor(OLD)[:, None])
    total = module.loss(encoded("entailment", states, ENDS, TRIPLES)).total
    flat = states.reshape(-1, WIDTH)

    def head(which: Any, vector: torch.Tensor) -> torch.Tensor:
        first, second = which.linear()
        return second.weight @ (first.weight @ vector).relu()

    keys = [head(module.key_head, flat[place]) for place in ENDS["object"]]
    expected = torch.zeros((), dtype=torch.float64)
    for n, place in enumerate(ENDS["subject"]):
        query = head(
            module.query_head, flat[place] + module.relations.weight[TRIPLES["relation"][n]]
        )
        left_out = {TRIPLES["entity"][n]} if allow_false_negatives else KNOWN[n]
        candidates = [*zip(keys, TRIPLES["entity"], strict=True), *zip(old, OLD, strict=True)]
        others = [key for key, entity in candidates if entity not in left_out]
        scores = torch.stack([query @ key for key in [keys[n], *others]])
        expected = expected - scores.log_softmax(dim=0)[0]
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)
    weights = [states, *module.parameters()]
    for found, wanted in zip(
        torch.autograd.grad(total, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


def test_relations_are_named_from_both_descriptions_in_the_ablation() -> None:
    module, states = entailment_module(loss="classify"), entity_states()
    found = module.loss(encoded("entailment", states, ENDS, TRIPLES)).total
    flat = states.reshape(-1, WIDTH)
    expected = torch.zeros((), dtype=torch.float64)
    for n, (s, z) in enumerate(zip(ENDS["subject"], ENDS["object"], strict=True)):
        scores = module.relations(torch.cat([flat[s], flat[z]]))
        expected = expected - scores.log_softmax(dim=0)[TRIPLES["relation"][n]]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert not hasattr(module, "queue")


@pytest.mark.parametrize("seed", range(5))
def test_known_answers_are_found_among_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = torch.from_numpy(rng.integers(-1, 12, 30))
    known = [rng.choice(12, rng.integers(0, 6), replace=False) for _ in range(7)]
    found = known_among(
        torch.from_numpy(np.concatenate(known)), torch.tensor([len(k) for k in known]), items
    )
    for row, answers in zip(found, known, strict=True):
        assert row.tolist() == [item in answers for item in items.tolist()]


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: EntityPrediction(queue=QueueConfig(start="filled")), "must be random or empty"),
        (lambda: ObjectEntailment(queue=QueueConfig(start="filled")), "must be random or empty"),
        (lambda: EntityPrediction(temperature=0.0), "temperature must be above 0"),
        (lambda: ObjectEntailment(projection_size=0), "size must be 1 or more"),
        (lambda: EntityPrediction(layer=3).build_module(encoder_of(), corpus_of()), "from 0 to 2"),
        (lambda: ObjectEntailment(layer=-1).build_module(encoder_of(), corpus_of()), "from 0 to 2"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, fault: str) -> None:
    with pytest.raises(RecipeError, match=fault):
        make()
