"""CAMLM: layouts token by token, no leak by gradient, the paper's conditionals exactly."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.dropped import describe_dropped
from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream
from isoglot.errors import CorpusError, IsoglotError, RecipeError
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.camlm import CAMLM, check_slot_positions
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.train_module import TrainModule
from isoglot.types import IGNORE, Cursor, MaskRule, Pair
from tests.batching.fakes import VOCABULARY
from tests.objectives.laid_out import (
    make_encoder,
    reference_log_probabilities,
    rows_of,
    sensitivity,
)

PAIR = Pair(
    first=np.arange(100, 113, dtype=np.int32),
    second=np.arange(200, 220, dtype=np.int32),
    first_language=3,
    second_language=4,
)


def built(example=PAIR, seed=0, **changes):
    return CAMLM(**changes).build(example, VOCABULARY, np.random.default_rng(seed))


def places(sequence):
    """Where in its own text each slot's token stands."""
    return (sequence.targets[sequence.targets != IGNORE] % 100).tolist()


def test_two_sequences_each_a_whole_sentence_and_slots_of_the_other():
    first, second = built(rate=0.2)
    assert first.ids[:15].tolist() == [0, *range(100, 113), 2]
    assert second.ids[:22].tolist() == [0, *range(200, 220), 2]
    for sequence, read, asked, number in ((first, 15, 4, 4), (second, 22, 3, 3)):
        assert sequence.rule == MaskRule.TRANSLATE
        assert sequence.ids[read:].tolist() == [VOCABULARY.mask] * number
        assert sequence.languages[read:].tolist() == [asked] * number
        assert sequence.languages[:read].tolist() == [7 - asked] * read
        assert sequence.roles.tolist() == [0] * read + [1] * number
        assert (sequence.targets[:read] == IGNORE).all()
        assert sequence.markers["slots"].tolist() == list(range(read, read + number))
        assert sequence.positions[:read].tolist() == list(range(read))
    assert set(first.targets[15:].tolist()) < set(range(200, 220))
    assert set(second.targets[22:].tolist()) < set(range(100, 113))
    assert first.sentences.tolist() == [0] * 15 + [1] * 4
    assert second.sentences.tolist() == [1] * 22 + [0] * 3


def test_a_slot_stands_where_its_token_would():
    first, second = built()
    # after [CLS] x1 .. x13 [SEP] comes [CLS] y1 ..
    assert first.positions[15:].tolist() == [15 + 1 + place for place in places(first)]
    assert second.positions[22:].tolist() == [22 + 1 + place for place in places(second)]
    first, second = built(positions="reset")
    assert first.positions[15:].tolist() == [1 + place for place in places(first)]
    assert second.positions[22:].tolist() == [1 + place for place in places(second)]


def test_inline_takes_the_hidden_tokens_out_of_what_the_other_side_reads():
    first, second = built(slots="inline", rate=0.2)
    gone = {
        "first": sorted(set(range(100, 113)) - set(first.ids.tolist())),
        "second": sorted(set(range(200, 220)) - set(second.ids.tolist())),
    }
    assert gone["first"] == second.targets[second.targets != IGNORE].tolist()
    assert gone["second"] == first.targets[first.targets != IGNORE].tolist()
    read = (first.roles == 0) & (first.ids >= 100)
    assert (first.positions[read] == first.ids[read] - 100 + 1).all()


def test_special_tokens_get_no_slot():
    unknown = Pair(
        first=np.array([3, 3, 3, 101, 3, 3, 3, 3, 3, 3], np.int32),
        second=np.array([3, 3, 3, 3], np.int32),
        first_language=0,
        second_language=1,
    )
    for slots in ("extra", "inline"):
        for seed in range(20):
            first, second = built(unknown, seed, rate=0.3, slots=slots)
            assert (first.roles == 1).sum() == 0
            assert second.targets[second.targets != IGNORE].tolist() == [101]
            sizes = np.array([[10, 4]], np.int32)
            lengths = CAMLM(rate=0.3, slots=slots).lengths(sizes)[0]
            assert len(first) <= lengths[0]
            assert len(second) <= lengths[1]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.floats(0.05, 1.0),
    st.sampled_from(["extra", "inline"]),
    st.sampled_from(["continuous", "reset"]),
)
def test_lengths_reach_and_targets_are_told_in_advance(first, second, rate, slots, positions):
    rng = np.random.default_rng(first)
    pair = Pair(
        first=rng.integers(4, 990, first).astype(np.int32),
        second=rng.integers(4, 990, second).astype(np.int32),
        first_language=0,
        second_language=1,
    )
    objective = CAMLM(rate=rate, slots=slots, positions=positions)
    sizes = np.array([[first, second]], np.int32)
    made = objective.build(pair, VOCABULARY, rng)
    assert [len(sequence) for sequence in made] == objective.lengths(sizes)[0].tolist()
    assert (
        max(int(sequence.positions.max()) for sequence in made) < objective.num_positions(sizes)[0]
    )
    targets = sum(int((sequence.targets != IGNORE).sum()) for sequence in made)
    assert targets == objective.max_targets(sizes)[0]


@pytest.mark.parametrize("positions", ["continuous", "reset"])
def test_no_slot_depends_on_its_own_sentence(positions):
    """By gradient: exactly zero for its own sentence, something for the other."""
    encoder = make_encoder()
    neighbor = built(seed=5, positions=positions)[0]
    pair = built(rate=0.2, positions=positions)
    rows, (at_neighbor, *at) = rows_of([neighbor, pair[0]], [pair[1]])
    for asked, (start, sequence) in enumerate(zip(at, pair, strict=True)):
        own, other = at[1 - asked], pair[1 - asked]
        for slot in sequence.markers["slots"]:
            for word in (7, int(sequence.targets[slot])):
                gradient = sensitivity(encoder, rows, start + int(slot), word)
                assert (gradient[own : own + len(other)] == 0).all()
                assert (gradient[at_neighbor : at_neighbor + len(neighbor)] == 0).all()
                assert (gradient[start : start + len(sequence)] > 0).all()
        for place in np.flatnonzero(sequence.roles == 0):
            gradient = sensitivity(encoder, rows, start + int(place))
            assert (gradient[start + sequence.markers["slots"]] == 0).all(), "it sees no slot"


@pytest.mark.parametrize("slots", ["extra", "inline"])
def test_the_conditionals_are_the_papers(slots):
    """Packed with others, both directions in one pass, against each alone and unpacked."""
    encoder = make_encoder()
    assert encoder.languages is not None
    with torch.no_grad():
        encoder.languages.weight.normal_()
        pair, other = built(rate=0.2, slots=slots), built(seed=3, slots=slots)
        rows, starts = rows_of([pair[0], other[1]], [other[0], pair[1]])
        hidden = encoder(rows).hidden.flatten(0, 1)
        for sequence, start in ((pair[0], starts[0]), (pair[1], starts[3])):
            inside = sequence.roles == 0
            sees = np.zeros((len(sequence), len(sequence)), bool)
            for i in range(len(sequence)):
                for j in range(len(sequence)):
                    sees[i, j] = inside[j] or not inside[i]
            expected = reference_log_probabilities(encoder, sequence, sees)
            for slot in sequence.markers["slots"]:
                found = torch.log_softmax(encoder.model.lm_head(hidden[start + slot]), dim=-1)
                assert (found - expected[slot]).abs().max() < 1e-9


def test_slots_of_one_sentence_see_each_other():
    """p(y5 | x1 x2 x3, M5, M6) is not p(y5 | x1 x2 x3, M5)."""
    encoder = make_encoder()
    both = built(rate=0.1)[0]
    assert both.markers["slots"].tolist() == [15, 16]
    fields = ("ids", "positions", "languages", "sentences", "roles", "targets")
    alone = replace(both, **{name: getattr(both, name)[:16] for name in fields}, markers={})
    with torch.no_grad():
        rows, (start, other) = rows_of([both, alone])
        hidden = encoder(rows).hidden.flatten(0, 1)
    assert (hidden[start + 15] - hidden[other + 15]).abs().max() > 1e-3


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(3, 120), st.integers(3, 120)), min_size=1, max_size=50))
def test_a_pair_costs_a_good_deal_less_than_two_masked_copies(pairs):
    sizes = np.array(pairs, np.int32)
    two_passes = 2 * TLM().lengths(sizes).sum()
    assert two_passes / CAMLM().lengths(sizes).sum() >= 1.6


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(IsoglotError, match="rate must be above 0"):
        CAMLM(rate=0.0)
    same = {"camlm": CAMLM(positions="reset"), "btmlm": BTMLM(positions="reset")}
    check_slot_positions({**same, "tlm": TLM()})
    with pytest.raises(RecipeError, match="camlm: continuous, btmlm: reset"):
        check_slot_positions({"camlm": CAMLM(), "btmlm": BTMLM(positions="reset")})


def test_pairs_that_reach_too_far_are_left_out_and_counted_or_named(corpus):
    """Their tokens would fit; the positions of a pair written out would not."""
    streams = {"parallel": ParallelStream(objectives=("camlm",), languages=("aa-bb",))}
    (opened,) = open_streams(corpus, streams, {"camlm": CAMLM()}, row_length=24)
    (part,) = opened.slices
    table = corpus.table(part.source, "aa-bb", "train")
    sizes = np.stack([table.lengths("first"), table.lengths("second")], axis=1)
    far = sizes.sum(axis=1) + 3 > 24
    assert 0 < far.sum() < len(far)
    assert (CAMLM().lengths(sizes)[far] <= 24).all(axis=1).any()
    assert part.num_dropped == far.sum()
    assert f"{far.sum()} of {len(far)} examples are dropped" in "".join(
        note.text for note in describe_dropped((opened,))
    )
    strict = {"parallel": replace(streams["parallel"], overlong="error")}
    with pytest.raises(
        CorpusError, match=r"\.arrow, row \d+: its sequence reaches over \d+ tokens"
    ):
        open_streams(corpus, strict, {"camlm": CAMLM()}, row_length=24)


def test_the_parts_of_the_loss_are_told_apart(corpus):
    """Source: tokens of the first side, whichever sequence asks for them."""
    objectives = {"camlm": CAMLM()}
    opened = open_streams(
        corpus, {"parallel": ParallelStream(objectives=("camlm",))}, objectives, row_length=96
    )
    loader = Loader(corpus, opened, BatchConfig(rows=4, micro_rows=4, row_length=96))
    (batch,) = next(loader.steps(Cursor()))
    encoder = make_encoder(size=corpus.vocabulary.size, layers=1)
    with torch.no_grad():
        found = TrainModule(encoder, objectives, corpus)(batch)["camlm"]
        states = encoder(batch.rows)
        head = encoder.target_losses(
            states, batch.target_positions, batch.targets, batch.target_weights
        )
    languages = batch.rows.languages.flatten()[batch.target_positions]
    # every pair is prepared with the alphabetically first language first
    sums = {"source": [0.0, 0], "target": [0.0, 0]}
    for site, flat in enumerate(batch.target_positions.tolist()):
        row = batch.rows.sequences[flat // 96]
        inside = row == row[flat % 96]
        read = int(batch.rows.languages[flat // 96][inside][0])
        part = "source" if int(languages[site]) < read else "target"
        sums[part][0] += float(head.losses[site])
        sums[part][1] += 1
    for part, (total, count) in sums.items():
        assert count > 0
        assert float(found.ratios[f"{part}_loss"][0]) == pytest.approx(total)
        assert int(found.ratios[f"{part}_loss"][1]) == count
