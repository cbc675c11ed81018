"""Padded batches: every draw once, lengths beside their like, nothing but the cursor remembered."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.padded import PaddedPlanner, build_planner
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.batching.streams import TextStream
from isoglot.objectives.backtranslate import BackTranslate
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.objectives.denoise import Denoise
from isoglot.objectives.mass import MASS
from isoglot.objectives.mlm import MLM
from isoglot.types import IGNORE, Cursor, Seq2SeqBatch
from tests.batching.fakes import FakeSlice, mixture, open_stream

SHAPE = BatchConfig(rows=32, micro_rows=8, row_length=64)
MAKERS = {
    objective.name: objective() for objective in (MASS, MLM, Denoise, BackTranslate, Cooccurrence)
}


def planner(**changes: int) -> Planner:
    rng = np.random.default_rng(0)
    parts = [FakeSlice(code, rng.integers(1, 40, 500).tolist()) for code in ("aa", "bb")]
    shape = BatchConfig(**{"rows": 8, "micro_rows": 2, "row_length": 64, **changes})  # type: ignore[arg-type]
    return build_planner(mixture(open_stream(parts, MASS())), shape, target_capacity=None)


def draws_of(plans):
    return [
        draw
        for p in plans
        for draw in zip(p.draws.components.tolist(), p.draws.counters.tolist(), strict=True)
    ]


def test_micro_batches_keep_within_their_tokens_and_to_one_length():
    padded, tokens, budget = 0, 0, 8 * 64
    for plans in itertools.islice(planner(rows=32, micro_rows=8).steps(Cursor()), 30):
        assert len(plans) == 4
        for plan in plans:
            sources, targets = plan.draws.lengths[::2], plan.draws.lengths[1::2]
            size = len(sources) * (sources.max() + targets.max())
            assert size <= budget
            padded += size
            tokens += sources.sum() + targets.sum()
    assert isinstance(planner(), PaddedPlanner)
    assert tokens / padded > 0.9, "sentences of about one length share a batch"
    assert padded / (30 * 4 * budget) > 0.9, "batches are full"


def test_every_draw_is_trained_on_once():
    seen, last = [], Cursor()
    for plans in itertools.islice(planner().steps(Cursor()), 40):
        seen += draws_of(plans)
        last = plans[0].cursor
    assert len(set(seen)) == len(seen)
    waiting = {tuple(draw) for draw in last.pending}
    taken = {(cell, n) for cell, number in enumerate(last.counters) for n in range(number)}
    assert set(seen) | waiting == taken
    assert not set(seen) & waiting


def test_no_draw_waits_for_ever():
    waits: dict[tuple[int, ...], int] = {}
    for plans in itertools.islice(planner().steps(Cursor()), 200):
        waits = {tuple(d): waits.get(tuple(d), 0) + 1 for d in plans[0].cursor.pending}
        assert max(waits.values(), default=0) < 30


def test_a_plan_is_a_function_of_its_cursor():
    plans = list(itertools.islice(planner().steps(Cursor()), 12))
    again = planner().steps(plans[5][0].cursor)
    assert [draws_of(p) for p in itertools.islice(again, 6)] == [draws_of(p) for p in plans[6:]]


def test_every_held_out_example_once():
    found = [draw for plan in planner().single_pass(100) for draw in draws_of([plan])]
    assert sorted(found) == [(cell, n) for cell in range(2) for n in range(100)]


def loader(corpus, *names, workers=0, rank=0, world=1):
    streams = {"text": TextStream(objectives=names, unit="sentence")}
    opened = open_streams(corpus, streams, MAKERS, row_length=SHAPE.row_length)
    return Loader(
        corpus,
        opened,
        SHAPE,
        workers=LoaderConfig(num_workers=workers),
        rank=rank,
        world=world,
        pad_targets=True,
    )


@pytest.fixture(scope="module")
def batch(corpus) -> Seq2SeqBatch:
    found = next(loader(corpus, "mass", "denoise", "backtranslate", "mlm").steps(Cursor()))[0]
    assert isinstance(found, Seq2SeqBatch)
    return found


def test_what_a_batch_holds(batch, corpus):
    rows, decoding = batch.rows, batch.decoding
    number = len(decoding.source_rows) // 3
    assert len(rows.ids) == 4 * number
    assert rows.ids[:, 0].ge(corpus.vocabulary.size).sum() == 3 * number, "mlm begins with <s>"
    assert decoding.rows.ids[:, 0].ge(corpus.vocabulary.size).all()
    assert set(decoding.target_slices) == {"mass", "denoise", "backtranslate"}
    for name, (start, stop) in decoding.target_slices.items():
        assert batch.num_targets[name] == stop - start > 0
    assert batch.num_targets["mlm"] == np.subtract(*batch.target_slices["mlm"][::-1])
    real = int((rows.sequences >= 0).sum() + (decoding.rows.sequences >= 0).sum())
    assert batch.num_tokens == real


def test_decoder_rows_read_their_own_source(batch):
    """MASS hides in the source what the decoder must write."""
    start, stop = batch.decoding.target_slices["mass"]
    width = batch.decoding.rows.ids.shape[1]
    mine = batch.decoding.target_positions[start:stop] // width
    begin, end = batch.target_slices["mass"]
    hidden = batch.target_positions[begin:end] // batch.rows.ids.shape[1]
    assert batch.decoding.source_rows[mine].equal(hidden)
    assert batch.targets[begin:end].equal(batch.decoding.targets[start:stop])
    ids = batch.decoding.rows.ids
    assert (batch.decoding.targets != IGNORE).all()
    assert (ids[batch.decoding.rows.sequences < 0] == batch.pad).all()


def test_wider_rows_keep_what_points_into_them(batch):
    before = batch.rows.ids.flatten()[batch.target_positions]
    unseen = batch.rows.ids.flatten()[batch.markers["mass"]["unseen"]]
    wide = batch.to("cpu")
    wide.widen(batch.rows.ids.shape[1] + 7)
    assert wide.rows.ids.flatten()[wide.target_positions].equal(before)
    assert wide.rows.ids.flatten()[wide.markers["mass"]["unseen"]].equal(unseen)
    assert (wide.rows.ids[:, -7:] == batch.pad).all()
    assert (wide.rows.sequences[:, -7:] == -1).all()
    assert batch.rows.ids.shape[1] == wide.rows.ids.shape[1] - 7, "the other one stays"


def test_processes_share_a_step_and_workers_change_nothing(corpus):
    (whole,) = itertools.islice(loader(corpus, "mass").steps(Cursor()), 1)
    halves = [next(loader(corpus, "mass", rank=r, world=2).steps(Cursor())) for r in range(2)]
    parts = [halves[n % 2][n // 2] for n in range(4)]
    built = next(loader(corpus, "mass", workers=1).steps(Cursor()))
    for one, two, three in zip(whole, parts, built, strict=True):
        assert one.rows.ids.equal(two.rows.ids)
        assert one.decoding.targets.equal(two.decoding.targets)
        assert one.decoding.rows.ids.equal(three.decoding.rows.ids)
        assert one.cursor == two.cursor == three.cursor


def test_cooccurrence_counts_what_mass_hides(corpus):
    makers = {**MAKERS, "cooccurrence": Cooccurrence(target_objectives=("mass",))}
    streams = {"text": TextStream(objectives=("mass", "cooccurrence"), unit="sentence")}
    opened = open_streams(corpus, streams, makers, row_length=64)
    batch = next(Loader(corpus, opened, SHAPE).steps(Cursor()))[0]
    assert batch.num_targets["cooccurrence"] == batch.num_targets["mass"] > 0
