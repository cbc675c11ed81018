"""Held-out mentions and facts before and after, against loops written out."""

from __future__ import annotations

import json
from statistics import fmean

import numpy as np

from isoglot.adaptation.comparison import ENTITIES, ENTITIES_HEADS, Development, compare
from isoglot.adaptation.linking import (
    LinkingScores,
    compare_linking,
    score_linking_files,
    write_linking,
)
from isoglot.adaptation.scores import ModelScores
from isoglot.corpus.knowledge.heldout_files import nearest_pairs
from isoglot.intervals import pack_outcomes
from tests.tiny_knowledge import with_knowledge

NONE = Development(before={}, after={}, vectors="")
RNG = np.random.default_rng(3)


def right(share: float, number: int = 60) -> np.ndarray:
    return RNG.random(number) < share


def test_a_layer_is_chosen_on_one_half_of_the_queries_and_scored_on_the_other():
    old = {"en-sw": [right(0.1), right(0.3)], "sw-en": [right(0.2), right(0.4)]}
    new = {"en-sw": [right(0.6), right(0.2)], "sw-en": [right(0.7), right(0.3)]}
    heads = {name: right(0.9) for name in new}
    before, after = (
        LinkingScores(
            layers={
                "entity-linking": {
                    name: [pack_outcomes(layer[None]) for layer in layers]
                    for name, layers in found.items()
                }
            },
            heads=trained,
        )
        for found, trained in (
            (old, {}),
            (new, {"entity-linking": {name: pack_outcomes(x[None]) for name, x in heads.items()}}),
        )
    )
    assert LinkingScores.from_json(json.loads(json.dumps(after.to_json()))) == after
    scores = compare(ModelScores(), ModelScores(), NONE, (1.0, 1.0), compare_linking(before, after))

    def best(found: dict[str, list[np.ndarray]]) -> int:
        means = [
            fmean(fmean(layers[number][::2].tolist()) for layers in found.values())
            for number in (0, 1)
        ]
        return means.index(max(means))

    states = {one.where: one for one in scores.of(ENTITIES)}
    trained = {one.where: one for one in scores.of(ENTITIES_HEADS)}
    for name, where in (("en-sw", "en→sw"), ("sw-en", "sw→en")):
        assert states[where].before == fmean(old[name][best(old)][1::2].tolist())
        assert states[where].after == fmean(new[name][best(new)][1::2].tolist())
        assert trained[where].before == states[where].before, "it had no heads"
        assert trained[where].after == fmean(heads[name][1::2].tolist())
        assert states[where].count == 30
        assert states[where].is_share
        assert states[where].higher_is_better
    (choice,) = scores.choices
    assert choice.what == "layer of entity linking"
    assert "heads: those that were trained after, the states before" in choice.choice
    assert "(60 are scored)" in choice.data


def test_heads_that_the_encoder_had_before_are_compared():
    packed = [pack_outcomes(right(share)[None]) for share in (0.1, 0.5, 0.9)]
    layers = {"entity-linking": {"en-sw": packed[:1]}}
    before, after = (
        LinkingScores(layers=layers, heads={"entity-linking": {"en-sw": found}})
        for found in packed[1:]
    )
    scores = compare(ModelScores(), ModelScores(), NONE, (1.0, 1.0), compare_linking(before, after))
    (heads,) = scores.of(ENTITIES_HEADS)
    assert heads.before == before.outcomes("entity-linking", "en-sw", None).mean()
    assert heads.before > scores.of(ENTITIES)[0].before


def test_files_are_written_and_scored(corpus, random_model, tmp_path, monkeypatch):
    """Each language with the one that describes most entities of its held-out mentions."""
    known = with_knowledge(corpus, tmp_path / "corpus")
    monkeypatch.setattr("isoglot.adaptation.linking._MIN_QUERIES", 4)
    pairs = nearest_pairs(known.knowledge)
    for language, other in pairs:
        entities = known.knowledge.mentions(language, "heldout")["entity"].tolist()
        described = {
            code: sum(known.knowledge.descriptions(code)[entity] is not None for entity in entities)
            for code in known.knowledge.languages
            if code != language
        }
        assert described[other] == max(described.values())
    counts = write_linking(known, tmp_path / "linking")
    assert set(counts["entity-linking"]) == {"-".join(pair) for pair in pairs}
    told: list[str] = []
    found = score_linking_files(random_model, tmp_path / "linking", note=told.append)
    assert set(found.layers) == {"entity-linking", "object-entailment"}
    assert found.heads == {}
    for task, numbers in counts.items():
        for name, number in numbers.items():
            if number < 4:
                assert name not in found.layers[task]
                assert f"{task} {name}: not scored, as {number} held-out" in " ".join(told)
                continue
            packed = found.layers[task][name]
            assert len(packed) == 3, "two layers and the embeddings"
            half = found.outcomes(task, name, 0)
            assert len(half) == number // 2
            assert set(half.tolist()) <= {0.0, 1.0}


def test_nothing_held_out_is_no_error(corpus, tmp_path, monkeypatch):
    known = with_knowledge(corpus, tmp_path / "corpus")
    monkeypatch.setattr("isoglot.adaptation.linking.nearest_pairs", lambda _: [])
    assert write_linking(known, tmp_path / "linking") == {}
    assert (tmp_path / "linking").is_dir()
