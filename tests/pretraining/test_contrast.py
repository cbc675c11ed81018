"""Whole runs with momentum contrast: killed and resumed, on two processes, validated, by epochs."""

import io
import json
import math
import os
import signal
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.streams import ParallelStream
from isoglot.objectives import OBJECTIVES, find_objective
from isoglot.objectives.contrast.info_nce import NO_ITEM
from isoglot.objectives.contrast.momentum import MomentumConfig, QueueConfig
from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.masking import Masking
from isoglot.objectives.moco import MoCo, MomentumContrast
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import StageConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.stage_data import num_steps
from isoglot.types import Cursor
from tests.pretraining import driver

TOTAL = sum(driver.CONTRAST_STEPS)
LAST = f"checkpoints/step-{TOTAL:08d}/weights.safetensors"
MAKERS = {name: find_objective(name)() for name in OBJECTIVES}


def test_held_out_pairs_are_scored_and_leave_the_queue_alone(corpus, tmp_path):
    config = driver.contrast()
    empty = MoCo(queue=QueueConfig(size=20, start="empty"))
    config = replace(
        config, stages=(replace(config.stages[1], steps=3),), objectives={"moco": empty}
    )
    pretrain(config, corpus, tmp_path / "run")
    *steps, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert {f"valid/moco/{name}/loss" for name in ("aa-bb", "aa-cc", "mean")} <= last.keys()
    state = load_file(tmp_path / "run/checkpoints/step-00000003/weights.safetensors")
    pushed = sum(step.get("moco/count", 0) for step in steps)
    assert int(state["objectives.moco.queue.num_filled"]) == min(pushed, 20)
    assert int(state["objectives.moco.queue.pointer"]) == pushed % 20


def contrast_alone(moco, *rates, steps=2):
    """Only pairs, a stage for each learning rate."""
    pairs = ParallelStream(objectives=("moco", "tlm"), order="shuffled")
    stages = tuple(
        StageConfig(
            steps=steps,
            streams={"parallel": pairs},
            optimizer=OptimizerConfig(learning_rate=rate, schedule="constant", warmup_steps=0),
        )
        for rate in rates
    )
    plain = driver.contrast()
    checkpoints = CheckpointConfig(every_steps=1, keep=20)
    return replace(plain, stages=stages, objectives={"moco": moco}, checkpoint=checkpoints)


def run(config, corpus, folder, *, resume=False, stop_at=None):
    """The steps of a run, and what it said; stopped after a step if asked."""
    said, found = io.StringIO(), []

    def note(step):
        found.append(step)
        if len(found) == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    console = Console(file=said, width=200)
    pretrain(config, corpus, folder, resume=resume, console=console, on_step=note)
    return found, said.getvalue()


def weights_at(folder, step):
    return load_file(folder / f"checkpoints/step-{step:08d}/weights.safetensors")


def test_a_queue_is_filled_before_the_first_step_and_the_data_stays_the_same(corpus, tmp_path):
    """From fewer pairs than it has places: they come again."""
    runs = {}
    for start in ("empty", "filled"):
        moco = MoCo(queue=QueueConfig(size=500, start=start))
        runs[start] = run(contrast_alone(moco, 1e-3), corpus, tmp_path / start)
    (empty, _), (filled, said) = runs["empty"], runs["filled"]
    assert "queue warm-up, keys still needed: moco 500" in said
    assert "queue warm-up" not in runs["empty"][1]
    assert [step.cursor for step in filled] == [step.cursor for step in empty]
    assert filled[0].losses["tlm"] == empty[0].losses["tlm"]
    assert empty[0].losses["moco"] == 0
    assert filled[0].losses["moco"] > math.log(250), "nothing is learned yet: one of 500"
    state = weights_at(tmp_path / "filled", 1)
    items = state["objectives.moco.queue.items"]
    assert (items != NO_ITEM).all()
    assert len(items[:, 0].unique()) > 250
    assert int(state["objectives.moco.key_encoder.num_updates"]) == 1


def test_a_resumed_run_does_not_fill_its_queue_again(corpus, tmp_path):
    moco = MoCo(queue=QueueConfig(size=50, start="filled"), momentum=MomentumConfig(value=0.5))
    config = contrast_alone(moco, 1e-3, 1e-3, steps=3)
    whole, said = run(config, corpus, tmp_path / "whole")
    assert said.count("queue warm-up") == 1, "not in the second stage"
    before, said = run(config, corpus, tmp_path / "stopped", stop_at=2)
    assert len(before) == 2
    after, said = run(config, corpus, tmp_path / "stopped", resume=True)
    assert "queue warm-up" not in said
    assert [step.losses for step in before + after] == [step.losses for step in whole]
    one, other = (weights_at(tmp_path / name, 6) for name in ("whole", "stopped"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_that_is_stopped_while_it_fills_begins_anew(corpus, tmp_path, monkeypatch):
    moco = MoCo(queue=QueueConfig(size=200, start="filled"))
    config = contrast_alone(moco, 1e-3)
    whole, _ = run(config, corpus, tmp_path / "whole")
    taken = MomentumContrast.warm_up

    def interrupted(*arguments):
        taken(*arguments)
        calls.append(arguments)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    calls: list[object] = []
    monkeypatch.setattr(MomentumContrast, "warm_up", interrupted)
    stopped, _ = run(config, corpus, tmp_path / "stopped")
    assert stopped == []
    assert len(calls) == 4, "the micro-batches of one step"
    again, said = run(config, corpus, tmp_path / "stopped", resume=True)
    assert "keys still needed: moco 200" in said
    assert [step.losses for step in again] == [step.losses for step in whole]


def test_key_weights_begin_with_the_first_stage_that_trains_them_and_go_on_in_the_next(
    corpus, tmp_path
):
    """A learning rate of 0 leaves the encoder as it is: keys that begin with it stay with it."""
    moco = MoCo(queue=QueueConfig(size=20), momentum=MomentumConfig(value=0.9))
    config = contrast_alone(moco, 0.0, 1e-2, 0.0, steps=1)
    text = replace(driver.contrast().stages[0], steps=1)
    run(replace(config, stages=(text, *config.stages)), corpus, tmp_path / "run")

    def behind(step):
        """How far key weights are from those they follow."""
        state = weights_at(tmp_path / "run", step)
        names = [name for name in state if name.startswith("objectives.moco.key_encoder.module.")]
        pairs = [
            (name, name.replace("objectives.moco.key_encoder.module", "encoder")) for name in names
        ]
        return max((state[a] - state[b]).abs().max().item() for a, b in pairs)

    assert behind(2) == 0
    assert behind(3) > 1e-3
    assert 0.85 * behind(3) < behind(4) < 0.95 * behind(3)


def test_the_contrast_of_infoxlm_runs(corpus, tmp_path):
    """Mixed pairs, masked tokens, an inner layer, and a queue that begins filled."""
    moco = MoCo(
        layer=1,
        projection=ProjectionConfig(layers=1, size=None, normalize="none"),
        queue=QueueConfig(size=40, start="filled"),
        masking=Masking(),
    )
    pairs = ParallelStream(objectives=("tlm",), order="shuffled")
    mixed = ParallelStream(objectives=("moco",), order="shuffled", mixup=True)
    stage = StageConfig(steps=3, streams={"parallel": pairs, "mixed": mixed})
    pretrain(
        replace(driver.contrast(), stages=(stage,), objectives={"moco": moco}),
        corpus,
        tmp_path / "run",
    )
    *steps, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert all(step["moco/loss"] > 0 for step in steps)
    assert last["valid/mixed.moco/mean/loss"] > 0


@pytest.mark.parametrize("epochs", [1.0, 2.5])
def test_epochs_become_the_steps_that_draw_every_example_so_often(corpus, epochs):
    stream = ParallelStream(objectives=("moco", "tlm"), sampling="epochs", order="shuffled")
    stage = StageConfig(epochs=epochs, streams={"parallel": stream})
    shape = driver.contrast().batch
    steps = num_steps(stage, corpus, MAKERS, shape, seed=0, number=0)
    assert steps == num_steps(stage, corpus, MAKERS, shape, seed=0, number=0)
    opened = open_streams(corpus, stage.streams, MAKERS, row_length=shape.row_length)
    examples = sum(part.num_examples for part in opened[0].slices)
    planner = Loader(corpus, opened, shape).planner
    cursor = Cursor()
    for _ in range(steps):
        cursor = planner.plan(cursor)[0].cursor
    drawn = cursor.draws - len(cursor.pending)
    # the nearest whole number of steps: half a step more or less
    assert abs(drawn - epochs * examples) < 0.6 * drawn / steps
    fewer = replace(stage, steps=3)
    assert num_steps(fewer, corpus, MAKERS, shape, seed=0, number=0) == 3


def test_a_run_by_epochs_ends_where_it_says(corpus, tmp_path):
    stream = ParallelStream(objectives=("moco",), sampling="epochs", max_pairs=30)
    stage = StageConfig(epochs=2, streams={"parallel": stream})
    config = replace(driver.contrast(), stages=(stage,))
    steps = num_steps(stage, corpus, MAKERS, config.batch, seed=0, number=0)
    outcome = pretrain(config, corpus, tmp_path / "run")
    assert outcome.finished
    assert outcome.total_steps == steps
    again = pretrain(config, corpus, tmp_path / "run", resume=True)
    assert again.total_steps == steps
