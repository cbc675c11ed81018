import numpy as np
import pytest

from isoglot.batching.streams import TextStream
from isoglot.errors import RecipeError
from isoglot.objectives import all_objectives, find_objective
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import StageConfig, objectives_of
from isoglot.types import IGNORE, MaskRule, Pair, Text
from tests.batching.fakes import VOCABULARY
from tests.pretraining import driver

TEXT = Text(
    ids=np.arange(100, 110, dtype=np.int32),
    sentences=np.array([0] * 4 + [1] * 6, np.int32),
    language=5,
)
PAIR = Pair(
    first=np.arange(100, 104, dtype=np.int32),
    second=np.arange(200, 206, dtype=np.int32),
    first_language=3,
    second_language=4,
)


def built(objective, example, seed=0):
    return objective.build(example, VOCABULARY, np.random.default_rng(seed))


def test_mlm_lays_out_a_text():
    (sequence,) = built(MLM(), TEXT)
    assert sequence.original().tolist() == [0, *range(100, 110), 2]
    assert sequence.positions.tolist() == list(range(12))
    assert sequence.sentences.tolist() == [0] * 5 + [1] * 7
    assert set(sequence.languages.tolist()) == {5}
    assert sequence.rule == MaskRule.FULL
    assert (sequence.targets != IGNORE).sum() == 2


def test_language_tokens_stand_in_the_place_of_cls():
    """In models with a decoder, token n of the vocabulary's size on is the n-th language's."""
    size = VOCABULARY.size
    (text,) = built(MLM(start_with="language"), TEXT)
    assert text.original().tolist() == [size + 5, *range(100, 110), 2]
    assert text.targets[0] == IGNORE
    (plain,) = built(MLM(), TEXT)
    assert text.ids[1:].tolist() == plain.ids[1:].tolist(), "the same tokens are masked"
    sides = [side.ids[0] for side in built(MLM(start_with="language"), PAIR)]
    assert sides == [size + 3, size + 4]


@pytest.mark.parametrize("language_ids", [True, False])
@pytest.mark.parametrize(
    ("separator", "expected"), [("single", [3]), ("double", [3]), ("both", [3, 4])]
)
def test_language_tokens_of_a_pair(separator, expected, language_ids):
    objective = TLM(start_with="language", separator=separator, language_ids=language_ids)
    (sequence,) = built(objective, PAIR)
    found = [token - VOCABULARY.size for token in sequence.ids if token >= VOCABULARY.size]
    assert found == expected
    assert VOCABULARY.cls not in sequence.ids
    assert set(sequence.languages.tolist()) == ({3, 4} if language_ids else {-1})


def test_language_tokens_need_a_model_that_has_them():
    stream = TextStream(objectives=("mlm",))
    config = driver.config(
        stages=(StageConfig(steps=1, streams={"text": stream}),),
        objectives={"mlm": MLM(start_with="language")},
    )
    with pytest.raises(RecipeError, match="'mlm' needs language tokens"):
        objectives_of(config)


def test_mlm_reads_each_side_of_a_pair_on_its_own():
    first, second = built(MLM(), PAIR)
    assert first.original().tolist() == [0, 100, 101, 102, 103, 2]
    assert second.original().tolist() == [0, *range(200, 206), 2]
    assert (set(first.languages.tolist()), set(second.languages.tolist())) == ({3}, {4})


@pytest.mark.parametrize(
    ("separator", "expected"),
    [
        ("single", [0, 100, 101, 102, 103, 2, *range(200, 206), 2]),
        ("double", [0, 100, 101, 102, 103, 2, 2, *range(200, 206), 2]),
        ("both", [0, 100, 101, 102, 103, 2, 0, *range(200, 206), 2]),
    ],
)
def test_tlm_lays_out_a_pair(separator, expected):
    (sequence,) = built(TLM(separator=separator), PAIR)
    assert sequence.original().tolist() == expected
    assert sequence.positions.tolist() == [*range(6), *range(len(expected) - 6)]
    assert sequence.languages.tolist() == [3] * 6 + [4] * (len(expected) - 6)
    assert sequence.sentences.tolist() == [0] * 6 + [1] * (len(expected) - 6)


def test_tlm_positions_can_run_on_and_languages_be_left_out():
    (sequence,) = built(TLM(positions="continuous", language_ids=False), PAIR)
    assert sequence.positions.tolist() == list(range(len(sequence)))
    assert set(sequence.languages.tolist()) == {-1}


def test_tlm_hides_tokens_of_both_sides():
    sides = np.zeros(2)
    for seed in range(300):
        (sequence,) = built(TLM(), PAIR, seed)
        hidden = sequence.targets != IGNORE
        sides += [hidden[:6].sum(), hidden[6:].sum()]
    assert sides / sides.sum() == pytest.approx([0.4, 0.6], abs=0.06)


@pytest.mark.parametrize("objective", all_objectives(), ids=lambda objective: objective.name)
@pytest.mark.parametrize("kind", ["text", "parallel"])
def test_every_objective_keeps_the_contract(objective, kind):
    """Lengths and the most targets are told in advance; the same generator builds the same."""
    settings = objective()
    assert objective.summary
    assert objective.paper
    if kind not in objective.reads:
        pytest.skip(f"{objective.name} does not read {kind}")
    rng = np.random.default_rng(0)
    for seed in range(50):
        if kind == "text":
            ids = rng.integers(4, 990, rng.integers(1, 60)).astype(np.int32)
            example: Text | Pair = Text(
                ids=ids, sentences=np.zeros_like(ids), language=0, target_language=1
            )
            sizes = np.array([[len(ids)]], np.int32)
        else:
            first, second = (
                rng.integers(4, 990, rng.integers(1, 60)).astype(np.int32) for _ in range(2)
            )
            example = Pair(first=first, second=second, first_language=0, second_language=1)
            sizes = np.array([[len(first), len(second)]], np.int32)
        made, again = built(settings, example, seed), built(settings, example, seed)
        if settings.depends_on():
            assert made == ()
            assert settings.lengths(sizes).shape[1] == settings.num_aux_sequences, "no main rows"
            assert not settings.max_targets(sizes).any()
            continue
        lengths, most = [len(sequence) for sequence in made], settings.lengths(sizes)[0].tolist()
        assert lengths == most or (
            objective.uses_decoder and all(a <= b for a, b in zip(lengths, most, strict=True))
        )
        predicted = made[1:2] if objective.uses_decoder else made  # the first is what is read
        targets = sum((sequence.targets != IGNORE).sum() for sequence in predicted)
        assert targets <= settings.max_targets(sizes)[0]
        sites = [
            place for sequence in made for place in sequence.markers.get(settings.target_marker, ())
        ]
        assert sites if settings.target_marker else targets, "it predicts something"
        for one, other in zip(made, again, strict=True):
            assert np.array_equal(one.ids, other.ids)
            assert np.array_equal(one.targets, other.targets)
            original = one.original()
            wanted = set(one.targets[one.targets != IGNORE].tolist())
            end = {VOCABULARY.sep} if objective.uses_decoder else set()
            assert not wanted & (set(VOCABULARY.special) - end)
            fields = ("ids", "positions", "languages", "roles")
            assert {len(getattr(one, field)) for field in fields} == {len(original)}


def test_objectives_can_live_elsewhere():
    assert find_objective("isoglot.objectives.tlm:TLM") is TLM
    for name, part in (
        ("tln", "did you mean 'tlm'"),
        ("nowhere.module:X", "cannot be imported"),
        ("isoglot.types:MaskRule", "is not a subclass of isoglot.Objective"),
    ):
        with pytest.raises(RecipeError, match=part):
            find_objective(name)
