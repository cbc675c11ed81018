"""Object entailment: layout, known objects, and Eq. 3 to 5 beside a slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isoglot.errors import RecipeError
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.entailment import ObjectEntailment, known_among
from isoglot.types import TripleExample
from tests.objectives.described import (
    VOCABULARY,
    WIDTH,
    corpus_of,
    encoded,
    encoder_of,
    states_of_rows,
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
    module, states = (
        entailment_module(allow_false_negatives=allow_false_negatives),
        states_of_rows(),
    )
    old = torch.randn(4, 4, dtype=torch.float64)
    module.queue.enqueue(old, torch.tensor(OLD)[:, None])
    result = module.loss(encoded("entailment", states, ENDS, TRIPLES))
    total, right = result.total, 0
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
        right += int(scores.argmax() == 0)
    assert float(result.metrics["accuracy"]) == right
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)
    weights = [states, *module.parameters()]
    for found, wanted in zip(
        torch.autograd.grad(total, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


def test_relations_are_named_from_both_descriptions_in_the_ablation() -> None:
    module, states = entailment_module(loss="classify"), states_of_rows()
    found = module.loss(encoded("entailment", states, ENDS, TRIPLES))
    flat = states.reshape(-1, WIDTH)
    expected, right = torch.zeros((), dtype=torch.float64), 0
    for n, (s, z) in enumerate(zip(ENDS["subject"], ENDS["object"], strict=True)):
        scores = module.relations(torch.cat([flat[s], flat[z]]))
        expected = expected - scores.log_softmax(dim=0)[TRIPLES["relation"][n]]
        right += int(scores.argmax() == TRIPLES["relation"][n])
    torch.testing.assert_close(found.total, expected, rtol=1e-12, atol=1e-12)
    assert float(found.metrics["accuracy"]) == right
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
        (lambda: ObjectEntailment(queue=QueueConfig(start="filled")), "must be random or empty"),
        (lambda: ObjectEntailment(projection_size=0), "size must be"),
        (lambda: ObjectEntailment(layer=-1).build_module(encoder_of(), corpus_of()), "from 0 to 2"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, fault: str) -> None:
    with pytest.raises(RecipeError, match=fault):
        make()
