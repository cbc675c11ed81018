"""The race's own arithmetic: what a step's work is, who is compared with whom."""

from __future__ import annotations

import copy
import json
import time

import pytest
import torch
from benchmarks.race import contestants, machine
from benchmarks.race.flops import StepCounts, _lengths, count_lengths
from benchmarks.race.kernel_profile import KernelProfile
from benchmarks.race.run import CONTESTANTS, chosen, finished, table
from transformers import XLMRobertaConfig

from isoglot.types import Rows

SHAPE = XLMRobertaConfig(
    vocab_size=50, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
)


def test_the_work_is_that_of_the_products():
    """Counted by torch itself, forward; there and back it is three times that."""
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import XLMRobertaForMaskedLM

    shape = copy.deepcopy(SHAPE)
    shape._attn_implementation = "eager"  # of fused attention it knows nothing on a CPU
    model = XLMRobertaForMaskedLM(shape).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.full((1, 12), 5))
    counts = StepCounts(tokens=12, squared_lengths=144, targets=12)
    assert 3 * counter.get_total_flops() == pytest.approx(counts.flops(SHAPE), rel=0.01)


def test_rows_that_are_only_encoded_cost_a_third():
    trained = StepCounts(5, 25, 0)
    encoded = StepCounts(0, 0, 0, aux_tokens=5, aux_squared_lengths=25)
    assert trained.flops(SHAPE) == pytest.approx(3 * encoded.flops(SHAPE))


def test_sizes_leave_padding_out():
    sequences = torch.tensor([[0, 0, 1, -1], [0, -1, -1, -1], [-1, -1, -1, -1]])
    rows = Rows(**{name: sequences for name in Rows.__slots__ if name != "unmasked"})
    assert _lengths(rows) == (4, 4 + 1 + 1)
    assert count_lengths([2, 1, 1], 0.5, 1) == StepCounts(4, 6, 2)


def test_steps_that_compile_are_not_timed(monkeypatch):
    """Two first steps; the fourth compiles, so the two after it are the ones that count."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    graphs = {"unique_graphs": 0}
    monkeypatch.setattr(contestants, "counters", {"stats": graphs})
    clock = contestants.Clock(warm_up=2, steps=2)
    waits = []
    monkeypatch.setattr(machine, "synchronize", lambda: waits.append(clock.ended))
    for seconds, compiles in [(9, 1), (9, 1), (1, 0), (30, 1), (2, 0), (3, 0)]:
        assert not clock.over
        now[0] += seconds
        graphs["unique_graphs"] += compiles
        clock.step_ended()
    assert clock.over
    assert clock.seconds == 5
    assert list(clock.counted) == [4, 5]
    assert waits == [2, 4, 6], "where it starts and where it stops, not in between"


@pytest.mark.parametrize(("processes", "first"), [("1", 6), ("2", 1)])
def test_a_clock_does_not_start_anew_for_ever(processes, first, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", processes)
    graphs = {"unique_graphs": 0}
    monkeypatch.setattr(contestants, "counters", {"stats": graphs})
    clock = contestants.Clock(warm_up=1, steps=2)
    while not clock.over:
        graphs["unique_graphs"] += 1
        clock.step_ended()
    assert clock.first == first


def reached(speed, **more):
    return {
        "tokens_per_second": speed,
        "step_ms": 1.0,
        "peak_gib": 2.0,
        "operations_per_second": 25.0,
        "micro_rows": 4,
        "peak": 100.0,
        **more,
    }


def test_everybody_is_compared_with_the_trainer_on_the_same_input():
    found = {
        "rows: Trainer, default flags": reached(100),
        "rows: Isoglot": reached(450),
        "pairs: Trainer, default flags": {"error": "out of memory"},
        "pairs: Isoglot": reached(300),
        "mix: ppa": reached(200),
    }
    lines = table(found).splitlines()[2:]
    assert "| 450 | 4.50× |" in lines[1]
    assert "25.0 %" in lines[1]
    assert "failed: out of memory" in lines[2]
    assert "| 300 |  |" in lines[3]
    assert "| 200 |  |" in lines[4]


def test_who_has_finished_does_not_run_again(tmp_path):
    path, shape = tmp_path / "race.json", {"rows": 4}
    assert finished(path, shape) == {}
    found = {"a": reached(1), "b": {"error": "no"}}
    path.write_text(json.dumps({"shape": shape, "found": found}))
    assert finished(path, shape) == {"a": found["a"]}
    with pytest.raises(SystemExit, match="Name another folder"):
        finished(path, {"rows": 8})


def test_a_full_name_asks_for_one_contestant_and_a_word_for_many():
    assert [name for name in CONTESTANTS if chosen(name, ["rows: Isoglot"])] == ["rows: Isoglot"]
    assert len([name for name in CONTESTANTS if chosen(name, ["Trainer"])]) == 7
    assert all(chosen(name, []) for name in CONTESTANTS)


def test_kernels_are_those_of_the_steps_after_the_timed_ones(tmp_path):
    kernels, steps = KernelProfile(tmp_path / "kernels.txt"), 1
    while kernels.step_ended():
        torch.ones(8, 8) @ torch.ones(8, 8)
        steps += 1
    assert steps == 1 + KernelProfile.STEPS
    lines = (tmp_path / "kernels.txt").read_text().splitlines()
    assert lines[0].startswith("kernels: ")
    assert any("1.0 x  aten::mm" in line for line in lines[1:])
    assert not KernelProfile(None).step_ended()
