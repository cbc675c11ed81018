"""InfoNCE and its candidates against loops over single numbers."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.objectives.contrast.info_nce import (
    NO_ITEM,
    Negatives,
    in_batch_negatives,
    info_nce,
    sentence_item,
    shares_item,
)


def vectors(number, seed, *, dimension=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(number, dimension, dtype=torch.float64, generator=generator)


def candidates_of(vectors, excluded):
    items = torch.full((len(vectors), 1), NO_ITEM)
    return Negatives(vectors=vectors, items=items, excluded=excluded)


def slow_loss(query, key, candidates, temperature):
    """-log of the share of the own key, one exponential at a time."""

    def share(vector):
        return math.exp(sum(a * b for a, b in zip(query, vector, strict=True)) / temperature)

    return -math.log(share(key) / (share(key) + sum(share(one) for one in candidates)))


def test_groups_of_queries_have_negatives_of_their_own():
    q, k, c = (vectors(3 * n, n).view(3, n, 5) for n in (4, 4, 6))
    k = k.flip(1)
    excluded = torch.rand(3, 4, 6, generator=torch.Generator().manual_seed(0)) < 0.3
    together = info_nce(q, k, candidates_of(c, excluded), temperature=0.5)
    for group in range(3):
        alone = info_nce(
            q[group], k[group], candidates_of(c[group], excluded[group]), temperature=0.5
        )
        for name in ("losses", "correct", "chance"):
            torch.testing.assert_close(getattr(together, name)[group], getattr(alone, name))


@given(
    queries=st.integers(1, 6),
    candidates=st.integers(0, 8),
    temperature=st.sampled_from([0.05, 0.25, 1.0]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_losses_are_the_slow_ones(queries, candidates, temperature, seed):
    q, k, c = (0.3 * vectors(n, seed + i) for i, n in enumerate((queries, queries, candidates)))
    excluded = torch.rand(queries, candidates, generator=torch.Generator().manual_seed(seed)) < 0.3
    found = info_nce(q, k, candidates_of(c, excluded), temperature=temperature)
    for i in range(queries):
        met = [c[j].tolist() for j in range(candidates) if not excluded[i, j]]
        expected = slow_loss(q[i].tolist(), k[i].tolist(), met, temperature)
        assert found.losses[i].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
        nearest = max(
            (float(q[i] @ c[j]) for j in range(candidates) if not excluded[i, j]), default=-9
        )
        assert bool(found.correct[i]) == (float(q[i] @ k[i]) >= nearest)


def test_gradients_are_the_slow_ones():
    q, k, c = (vectors(n, n).requires_grad_() for n in (3, 3, 7))
    found = info_nce(q, k, candidates_of(c, torch.zeros(3, 7).bool()), temperature=0.5).losses.sum()
    by_hand = torch.zeros((), dtype=torch.float64)
    for query, key in zip(q, k, strict=True):
        shares = torch.stack([(query * one).sum() / 0.5 for one in (key, *c)]).exp()
        by_hand = by_hand - (shares[0] / shares.sum()).log()
    for one, other in zip(
        torch.autograd.grad(found, (q, k, c)), torch.autograd.grad(by_hand, (q, k, c)), strict=True
    ):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


def test_it_is_computed_in_float32_under_autocast():
    q, k, c = (vectors(n, n).float() for n in (4, 4, 9))
    candidates = candidates_of(c, torch.zeros(4, 9).bool())
    plain = info_nce(q, k, candidates, temperature=0.05).losses
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = info_nce(q, k, candidates, temperature=0.05).losses
    assert under.dtype == torch.float32
    assert torch.equal(plain, under)


def test_things_with_a_number_in_common_are_the_same():
    items = torch.tensor([[1, 2], [3, 4], [NO_ITEM, 5]])
    others = torch.tensor([[2, 9], [7, 3], [8, 8], [NO_ITEM, NO_ITEM]])
    assert shares_item(items, others).tolist() == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, False, False],
    ]


def losses_in_batch(q, k, items, *, apart=True):
    negatives = in_batch_negatives(k, items, deduplicate=apart)
    if apart:
        negatives = negatives.excluding_same(items)
    return info_nce(q, k, negatives, temperature=0.2).losses


@given(pairs=st.lists(st.integers(0, 5), min_size=1, max_size=12), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_doubles_in_a_batch_change_no_loss(pairs, seed):
    """Each query's loss is the one that it has in the batch without doubles."""
    # short, so that the own key never has all of the weight or none
    q, k = 0.3 * vectors(6, seed), 0.3 * vectors(6, seed + 1)
    items = torch.stack([torch.arange(6), 100 + torch.arange(6)], dim=1)
    once = sorted(set(pairs))
    alone = dict(zip(once, losses_in_batch(q[once], k[once], items[once]), strict=True))
    found = losses_in_batch(q[pairs], k[pairs], items[pairs])
    for pair, loss in zip(pairs, found, strict=True):
        assert loss.item() == pytest.approx(alone[pair].item(), rel=1e-12, abs=1e-12)
    if len(once) < len(pairs):
        met = losses_in_batch(q[pairs], k[pairs], items[pairs], apart=False)
        assert (met >= found - 1e-12).all()
        assert (met > found + 1e-9).any(), "the setting that meets them does meet them"


def test_translations_of_one_sentence_are_not_held_against_each_other():
    """One English sentence (number 7) with a German and a French translation."""
    q, k = vectors(3, 0), vectors(3, 1)
    items = torch.tensor([[1, 7], [2, 7], [3, 8]])  # key, query
    found = losses_in_batch(q, k, items)
    for i in (0, 1):
        expected = slow_loss(q[i].tolist(), k[i].tolist(), [k[2].tolist()], 0.2)
        assert found[i].item() == pytest.approx(expected)
    both = [k[0].tolist(), k[1].tolist()]
    assert found[2].item() == pytest.approx(slow_loss(q[2].tolist(), k[2].tolist(), both, 0.2))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_key_of_two_pairs_is_held_against_neither_of_their_queries(order):
    """Key 7 translates 1 and 2; a second key of 2 must not be told apart from it, in any order."""
    items = torch.tensor([[7, 1], [7, 2], [8, 2]])[list(order)]
    q, k = vectors(3, 0), vectors(3, 1)[[0, 0, 1]][list(order)]
    met = ~in_batch_negatives(k, items, deduplicate=True).excluding_same(items).excluded
    place = {tuple(pair): number for number, pair in enumerate(items.tolist())}
    assert met[place[8, 2]].sum() == 0
    assert met[place[7, 2]].sum() == 0
    assert met[place[7, 1]].nonzero().flatten().tolist() == [place[8, 2]]
    expected = losses_in_batch(q, k, items)[place[8, 2]]
    assert expected.item() == pytest.approx(0.0, abs=1e-12)


def test_candidates_of_two_kinds_can_be_joined():
    k, items = vectors(2, 3), torch.tensor([[1], [2]])
    more = Negatives(
        vectors=vectors(4, 4),
        items=torch.tensor([[1], [5], [6], [2]]),
        excluded=torch.zeros(2, 4, dtype=torch.bool),
    )
    joined = in_batch_negatives(k, items, deduplicate=True).join(more).excluding_same(items)
    assert joined.excluded.tolist() == [
        [True, False, True, False, False, False],
        [False, True, False, False, False, True],
    ]


def test_fingerprints_tell_sentences_apart_and_are_never_negative():
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 50, rng.integers(1, 6)).astype(np.int32) for _ in range(3000)]
    known: dict[int, bytes] = {}
    for ids in sentences:
        number = sentence_item(ids)
        assert number >= 0
        assert known.setdefault(number, ids.tobytes()) == ids.tobytes()
    assert sentence_item(np.array([1, 2], np.int32)) != sentence_item(np.array([2, 1], np.int32))
    assert sentence_item(np.array([5, 6, 7], np.int32)) == 2421027984478158393


def test_equal_scores_count_as_guesses_and_chance_is_one_of_all_candidates():
    """A collapsed encoder, whose vectors are all the same, is at chance and not at 100 %."""
    ones = torch.ones(3, 4)
    excluded = torch.tensor([[True, False, False], [False, True, True], [True, True, True]])
    negatives = Negatives(vectors=ones, items=torch.arange(3)[:, None], excluded=excluded)
    found = info_nce(ones, ones, negatives, temperature=1.0)
    expected = [1 / 3, 1 / 2, 1.0]
    assert found.correct.tolist() == pytest.approx(expected)
    assert found.chance.tolist() == pytest.approx(expected)
    assert {name: float(value) for name, value in found.metrics().items()} == pytest.approx(
        {"accuracy": sum(expected), "chance": sum(expected)}
    )
    better = info_nce(2 * ones, 2 * ones, negatives, temperature=1.0)
    assert better.correct.tolist() == [1.0, 1.0, 1.0]
    assert info_nce(ones, -ones, negatives, temperature=1.0).correct.tolist() == [0.0, 0.0, 1.0]
    both = found.mean_with(better)
    assert both.correct.tolist() == pytest.approx([2 / 3, 3 / 4, 1.0])
    assert both.chance.tolist() == pytest.approx(expected)
