"""Mining against a slow reference of XTREME's BUCC rules, over texts and ids in pure Python."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest
import torch

from isoglot.evaluation.mining import MiningSet, best_threshold, mine_pairs
from isoglot.tasks import find_task
from isoglot.tasks.examples import BitextEntry

K = 3


def cosine(first, second):
    dot = math.fsum(a * b for a, b in zip(first, second, strict=True))
    return dot / (math.hypot(*first) * math.hypot(*second))


def mined_by_hand(first, second):
    """Unified sentences and their vectors -> accepted (text, text, margin), best first."""
    similar = {(a, b): cosine(first[a], second[b]) for a in first for b in second}
    near_first = {a: sorted(second, key=lambda b: -similar[a, b])[:K] for a in first}
    near_second = {b: sorted(first, key=lambda a: -similar[a, b])[:K] for b in second}
    around_first = {a: sum(similar[a, b] for b in near) / K for a, near in near_first.items()}
    around_second = {b: sum(similar[a, b] for a in near) / K for b, near in near_second.items()}

    def margin(a, b):
        return similar[a, b] / ((around_first[a] + around_second[b]) / 2)

    proposals = [(a, max(near, key=lambda b: margin(a, b))) for a, near in near_first.items()]
    proposals += [(max(near, key=lambda a: margin(a, b)), b) for b, near in near_second.items()]
    accepted, seen_first, seen_second = [], set(), set()
    for a, b in sorted(proposals, key=lambda pair: -margin(*pair)):
        if a not in seen_first and b not in seen_second:
            seen_first.add(a)
            seen_second.add(b)
            if margin(a, b) > 0:
                accepted.append((a, b, margin(a, b)))
    return accepted


def scored_by_hand(ids_first, ids_second, gold, mined, threshold=None):
    """(id, text) of both sides, gold pairs of ids, mined texts -> best threshold, and scores."""

    def only_once(side):
        texts = [text for _, text in side]
        return {text: name for name, text in side if texts.count(text) == 1}

    first, second = only_once(ids_first), only_once(ids_second)
    scores = {(first[a], second[b]): s for a, b, s in mined if a in first and b in second}
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    best, own = 0.0, 0.0
    for number in range(1, len(ranked) + 1):
        right = sum(pair in gold for pair, _ in ranked[:number])
        f1 = 2 * right / (number + len(gold))
        if f1 > best:
            best = f1
            below = ranked[number][1] if number < len(ranked) else ranked[-1][1]
            own = (ranked[number - 1][1] + below) / 2
    wanted = own if threshold is None else threshold
    kept = [pair for pair, score in scores.items() if score >= wanted]
    right = sum(pair in gold for pair in kept)
    precision, recall = right / len(kept) if kept else 0.0, right / len(gold)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return own, {"f1": f1, "precision": precision, "recall": recall}


def made_up(seed, *, repeats):
    """Entries, and a vector for each text; some texts stand twice on a side."""
    rng = random.Random(seed)
    vectors = {}

    def text(side, number, meaning):
        name = f"{side} {number}"
        vectors[name] = [m + rng.gauss(0, 0.7) for m in meaning]
        return name

    entries = []
    for number in range(14):
        meaning = [rng.gauss(0, 1) for _ in range(6)]
        other = meaning if number < 8 else [rng.gauss(0, 1) for _ in range(6)]
        one, two = text("a", number, meaning), text("b", number, other)
        linked = [BitextEntry(first=one, second=two)]
        alone = [BitextEntry(first=one, second=None), BitextEntry(first=None, second=two)]
        entries += linked if number < 8 else alone
    for _ in range(repeats):
        again = rng.choice(entries)
        entries.append(
            BitextEntry(first=again.first, second=None)
            if again.first is not None
            else BitextEntry(first=None, second=again.second)
        )
    return entries, vectors


def both_ways(entries, vectors):
    """`scored_by_hand` of the mined pairs, and our candidates."""
    ids = [
        [(f"{n}", t) for n, t in enumerate(side) if t is not None]
        for side in ([e.first for e in entries], [e.second for e in entries])
    ]
    gold = {(f"{n}", f"{n}") for n, e in enumerate(entries) if e.first and e.second}
    unified = [{text: vectors[text] for _, text in side} for side in ids]
    mining_set = MiningSet(entries)
    sides = [torch.tensor([vectors[text] for text in side]) for side in mining_set.texts]
    pairs = mining_set.candidates(mine_pairs(*sides, k=K))
    assert mining_set.num_gold == len(gold) == 8
    return partial(scored_by_hand, ids[0], ids[1], gold, mined_by_hand(*unified)), pairs


@pytest.mark.parametrize("repeats", [0, 1, 4])
@pytest.mark.parametrize("seed", range(8))
def test_scores_are_xtremes(seed, repeats):
    """With the threshold of the same sentences, and of others."""
    entries, vectors = made_up(seed, repeats=repeats)
    by_hand, pairs = both_ways(entries, vectors)
    dev_by_hand, dev_pairs = both_ways(*made_up(seed + 100, repeats=repeats))
    dev_threshold, _ = dev_by_hand()
    for expected_threshold, of_dev in ((None, pairs), (dev_threshold, dev_pairs)):
        _, expected = by_hand(expected_threshold)
        threshold = best_threshold(of_dev, num_gold=8)
        kept = [(i, j) for i, j, margin in pairs if margin >= threshold]
        assert find_task("bucc").score(entries, kept, "de-en") == pytest.approx(expected)
    assert best_threshold(dev_pairs, num_gold=8) == pytest.approx(dev_threshold, abs=1e-5)


def test_the_threshold_is_halfway_to_the_next_pair():
    pairs = [(0, 0, 3.0), (1, 1, 2.0), (2, 5, 1.0), (3, 4, 0.5)]
    assert best_threshold(pairs, num_gold=2) == 1.5
    assert best_threshold(pairs[:2], num_gold=2) == 2.0, "there is no next pair"
    assert best_threshold(pairs[2:], num_gold=2) == 0.0, "no pair is correct"


def test_a_repeated_sentence_is_mined_once_and_its_pairs_left_out():
    entries = [
        BitextEntry(first="x", second="y"),
        BitextEntry(first="z", second="w"),
        BitextEntry(first="x ", second=None),
    ]
    mining_set = MiningSet(entries)
    assert mining_set.texts == (["x", "z"], ["y", "w"])
    assert mining_set.candidates([(0, 0, 2.0), (1, 1, 1.0)]) == [(1, 1, 1.0)]


def test_each_sentence_is_mined_once():
    generator = torch.Generator().manual_seed(2)
    first = torch.randn(40, 64, generator=generator)
    second = torch.cat([first[:25] + 0.3 * torch.randn(25, 64, generator=generator),
                        torch.randn(10, 64, generator=generator)])  # fmt: skip
    found = mine_pairs(first, second, k=4)
    assert len({i for i, _, _ in found}) == len({j for _, j, _ in found}) == len(found)
    assert [margin for *_, margin in found] == sorted((m for *_, m in found), reverse=True)
    assert {(i, j) for i, j, _ in found[:20]} <= {(i, i) for i in range(25)}
