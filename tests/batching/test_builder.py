"""A batch holds its sequences token by token, its targets, markers and labels, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from typing_extensions import override

from isoglot.batching.builder import BatchBuilder, PlacedSequence, RowBuffer, TargetCollector
from isoglot.batching.counter_rng import key_of
from isoglot.batching.planner import BatchConfig, MicroBatchPlan, Planner
from isoglot.errors import IsoglotError
from isoglot.types import IGNORE, Batch, Cursor, MaskRule, Rows, Sequence
from tests.batching.fakes import VOCABULARY, FakeSlice, Plain, mixture, open_stream

MAIN = "main rows"
FIELDS = ("ids", "positions", "languages", "sentences", "roles")


def sequence(length: int, rng: np.random.Generator, **changes: object) -> Sequence:
    """A sequence whose arrays have nothing in common."""
    arrays = {name: rng.integers(10, 900, length).astype(np.int32) for name in FIELDS}
    targets = np.where(rng.random(length) < 0.4, rng.integers(10, 900, length), IGNORE)
    return Sequence(**{**arrays, "targets": targets.astype(np.int32), **changes})  # type: ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(Plain):
    """Sequences of random numbers, two in the main rows and one beside them."""

    copies: int = 3
    num_aux_sequences: ClassVar[int] = 1

    @override
    def build(self, example, vocabulary, rng) -> tuple[Sequence, ...]:
        length = len(example.ids)
        made = []
        for number in range(3):
            changes: dict[str, object] = {
                "rule": MaskRule(number),
                "markers": {"edges": np.array([0, length - 1]), f"only{number}": np.array([0])},
                "labels": {"length": np.array([length]), "number": np.array([number, number])},
            }
            if number == 2:
                changes["targets"] = np.full(length, IGNORE, np.int32)
            made.append(sequence(length, rng, **changes))
        return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following(Plain):
    """Depends on `m0`: one auxiliary sequence, with markers in the sequence it depends on."""

    copies: int = 1
    num_aux_sequences: ClassVar[int] = 1
    base_markers: ClassVar[tuple[str, ...]] = ("in_base",)

    @override
    def depends_on(self) -> tuple[str, ...]:
        return ("m0",)

    @override
    def max_targets(self, sizes) -> np.ndarray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build_from(self, bases, vocabulary, rng) -> tuple[Sequence, ...]:
        length = len(bases[0])
        markers = {"in_base": np.array([length - 1]), "own": np.array([length - 1, 0])}
        nothing = np.full(length, IGNORE, np.int32)
        return (sequence(length, rng, targets=nothing, markers=markers),)


class OneBatch:
    """A planned and built micro-batch, and its sequences built once more, draw by draw."""

    def __init__(self, *objectives: Plain, capacity: int | None = None) -> None:
        parts = [FakeSlice("a", [3, 8, 13, 5]), FakeSlice("b", [6, 2])]
        self.mixed = mixture(open_stream([*parts], *objectives), seed=5, stage=1)
        shape = BatchConfig(rows=8, micro_rows=8, row_length=32)
        planner = Planner(self.mixed, shape, target_capacity=capacity)
        self.builder = BatchBuilder(
            self.mixed,
            VOCABULARY,
            micro_rows=8,
            row_length=32,
            num_aux_rows=planner.num_aux_rows,
            target_capacity=capacity,
            seed=5,
            stage=1,
        )
        (self.plan,) = planner.plan(Cursor())
        self.batch: Batch = self.builder[self.plan]

    def built(self) -> List[tuple[str, bool, int, Sequence]]:
        """(objective, in the main rows?, number of the sequence in the plan, the sequence)."""
        found, number = [], 0
        draws = self.plan.draws
        for draw in range(len(draws.components)):
            component = self.mixed.components[draws.components[draw]]
            one, index = component.locate(int(draws.examples[draw]))
            example = one.example(index, float(draws.uniforms[draw]))
            built: dict[str, tuple[Sequence, ...]] = {}
            for name, objective in component.objectives:
                key = key_of(5, 1, "masks", component.name, name)
                bits = np.random.Philox(key=np.array([key, draws.counters[draw]], np.uint64))
                rng = np.random.Generator(bits)
                if objective.depends_on():
                    built[name] = objective.build_from(built["m0"], VOCABULARY, rng)
                else:
                    built[name] = objective.build(example, VOCABULARY, rng)
                num_main = len(built[name]) - objective.num_aux_sequences
                for place, made in enumerate(built[name]):
                    found.append((name, place < num_main, number, made))
                    number += 1
        return found


def check_rows(one: OneBatch) -> None:
    """Every token of every sequence in its place, and padding everywhere else."""
    rows: dict[str, Rows] = {MAIN: one.batch.rows, **one.batch.aux_rows}
    left = {key: torch.ones(found.ids.shape, dtype=torch.bool) for key, found in rows.items()}
    order: dict[tuple[str, int], int] = {}
    tokens = 0
    for name, is_main, number, made in one.built():
        key = MAIN if is_main else name
        row, offset = int(one.plan.rows[number]), int(one.plan.offsets[number])
        place = (row, slice(offset, offset + len(made)))
        for field in FIELDS:
            assert getattr(rows[key], field)[place].tolist() == getattr(made, field).tolist()
        assert set(rows[key].rules[place].tolist()) == {int(made.rule)}
        own = order.setdefault((key, row), 0)
        assert set(rows[key].sequences[place].tolist()) == {own}
        order[key, row] += 1
        assert left[key][place].all()
        left[key][place] = False
        tokens += len(made) if is_main else 0
    for key, found in rows.items():
        assert (found.ids[left[key]] == VOCABULARY.pad).all()
        assert (found.sequences[left[key]] == -1).all()
        for field in (*FIELDS[1:], "rules"):
            assert (getattr(found, field)[left[key]] == 0).all()
    assert one.batch.num_tokens == tokens


def check_targets(one: OneBatch) -> None:
    """Positions, targets, markers and labels of each objective, in the order of the draws."""
    positions: dict[str, list[int]] = {}
    targets: dict[str, list[int]] = {}
    markers: dict[tuple[str, bool], dict[str, list[int]]] = {}
    labels: dict[str, dict[str, list[int]]] = {}
    for name, is_main, number, made in one.built():
        start = int(one.plan.rows[number]) * 32 + int(one.plan.offsets[number])
        for place in np.flatnonzero(made.targets != IGNORE).tolist():
            positions.setdefault(name, []).append(start + place)
            targets.setdefault(name, []).append(int(made.targets[place]))
        for marker, places in made.markers.items():
            own = markers.setdefault((name, is_main), {})
            own.setdefault(marker, []).extend((start + places).tolist())
        for label, numbers in made.labels.items():
            labels.setdefault(name, {}).setdefault(label, []).extend(numbers.tolist())
    batch = one.batch
    for name, (first, last) in batch.target_slices.items():
        assert batch.target_positions[first:last].tolist() == positions.get(name, [])
        assert batch.targets[first:last].tolist() == targets.get(name, [])
    for (name, is_main), expected in markers.items():
        found = (batch.markers if is_main else batch.aux_markers)[name]
        assert {marker: places.tolist() for marker, places in found.items()} == expected
    for name, of in labels.items():
        assert {label: some.tolist() for label, some in batch.labels[name].items()} == of


def test_a_batch_holds_its_sequences_token_by_token():
    one = OneBatch(Drawn(), Plain())
    check_rows(one)
    check_targets(one)
    assert list(one.batch.target_slices) == ["m0", "m1"]
    assert one.batch.target_slices["m0"][0] == 0
    assert one.batch.target_slices["m0"][1] == one.batch.target_slices["m1"][0] > 0
    assert one.batch.target_slices["m1"][1] == len(one.batch.targets)
    assert one.batch.num_targets == {
        name: last - first for name, (first, last) in one.batch.target_slices.items()
    }
    assert one.batch.target_weights.tolist() == [1.0] * len(one.batch.targets)
    assert one.batch.cursor == one.plan.cursor


def test_an_objective_that_depends_on_another_points_into_its_sequence():
    one = OneBatch(Plain(), Following())
    check_rows(one)
    starts = [
        int(one.plan.rows[number]) * 32 + int(one.plan.offsets[number])
        for name, is_main, number, _ in one.built()
        if name == "m0" and is_main
    ]
    lengths = [len(made) for name, is_main, _, made in one.built() if name == "m0" and is_main]
    expected = [start + length - 1 for start, length in zip(starts, lengths, strict=True)]
    assert one.batch.markers["m1"]["in_base"].tolist() == expected
    assert set(one.batch.aux_markers["m1"]) == {"own"}
    # it counts the targets of what it depends on
    assert one.batch.num_targets["m1"] == one.batch.num_targets["m0"] == len(expected)


def test_targets_are_padded_with_weight_zero():
    full = OneBatch(Drawn())
    number = len(full.batch.targets)
    one = OneBatch(Drawn(), capacity=number + 500)
    filled = int(one.batch.target_weights.sum())
    assert filled == one.batch.num_targets["m0"] > 0
    assert len(one.batch.targets) == len(one.batch.target_positions) == number + 500
    assert one.batch.target_weights[:filled].tolist() == [1.0] * filled
    assert one.batch.target_weights[filled:].sum() == 0
    assert one.batch.targets[filled:].sum() == one.batch.target_positions[filled:].sum() == 0


def test_rows_of_one_whole_sequence_each_are_unmasked():
    rng = np.random.default_rng(0)
    buffer = RowBuffer(2, 4, VOCABULARY.pad)
    assert [buffer.put(sequence(4, rng), row, 0) for row in (0, 1)] == [0, 4]
    assert buffer.rows().unmasked
    assert buffer.num_tokens == 8
    for second in (
        sequence(3, rng),
        sequence(4, rng, rule=MaskRule.TRANSLATE),
        sequence(4, rng, rule=MaskRule.GENERATE),
    ):
        other = RowBuffer(2, 4, VOCABULARY.pad)
        other.put(sequence(4, rng), 0, 0)
        assert other.put(second, 1, 4 - len(second)) == 4 + 4 - len(second)
        assert not other.rows().unmasked
    two = RowBuffer(1, 4, VOCABULARY.pad)
    two.put(sequence(2, rng), 0, 0)
    assert two.put(sequence(2, rng), 0, 2) == 2
    assert not two.rows().unmasked
    assert two.rows().sequences.tolist() == [[0, 0, 1, 1]]


def test_auxiliary_rows_have_no_targets():
    rng = np.random.default_rng(1)
    bad = sequence(5, rng, targets=np.arange(5, dtype=np.int32))
    with pytest.raises(AssertionError, match="no LM head"):
        TargetCollector().collect(
            PlacedSequence("m0", Plain(), bad, 0, is_aux=True), base_start=None
        )


def test_a_sequence_longer_than_planned_is_a_fault():
    class Longer(Plain):
        @override
        def build(self, example, vocabulary, rng):
            return (sequence(len(example.ids) + 1, rng),)

    with pytest.raises(AssertionError):
        OneBatch(Longer())


def test_the_fault_of_an_example_names_its_row():
    class Broken(Plain):
        @override
        def build(self, example, vocabulary, rng):
            if len(example.ids) == 13:
                raise IndexError("index 7 is out of bounds")
            return Plain.build(self, example, vocabulary, rng)

    with pytest.raises(IsoglotError, match="fake/a, row 2: index 7 is out of bounds"):
        OneBatch(Broken())


def test_an_empty_plan_is_a_batch_of_padding():
    one = OneBatch(Drawn())
    nothing = np.zeros(0, np.int64)
    plan = MicroBatchPlan(draws=one.plan.draws[:0], rows=nothing, offsets=nothing)
    batch = one.builder[plan]
    assert (batch.rows.sequences == -1).all()
    assert batch.num_tokens == 0
    assert batch.num_targets == {"m0": 0}
    assert len(batch.targets) == 0
