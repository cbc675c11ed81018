"""A micro-batch from its plan: read the examples, build the sequences, write them into rows.

Runs in loader workers. All randomness comes from generators keyed by (seed, stage, component,
counter) and the objective, so a batch depends on its plan alone.

    plan --read--> examples --objective.build--> sequences --RowBuffer--> rows
                                                    `--TargetCollector--> targets, markers, labels
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset
from typing_extensions import override

from isoglot.batching.counter_rng import key_of
from isoglot.batching.schedules import ObjectivesOfStep
from isoglot.errors import IsoglotError
from isoglot.types import IGNORE, Batch, LongArray, MaskRule, Rows, Sequence, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.batching.mixture import Mixture
    from isoglot.batching.planner import MicroBatchPlan
    from isoglot.batching.schedules import StageSchedules
    from isoglot.objectives.base import Objective
    from isoglot.types import Example, Rng

_FIELDS = ("ids", "positions", "languages", "sentences", "roles", "rules", "sequences")


_Built = tuple[str, "Objective", tuple[Sequence, ...]]
"""(name, objective, sequences of one draw)."""


class PlacedSequence(NamedTuple):
    """A sequence, the objective that built it, and where it is."""

    name: str
    objective: Objective
    sequence: Sequence
    start: int
    """Flat index of its first token."""
    is_aux: bool
    """Is it in the objective's auxiliary rows?"""
    is_decoder: bool = False
    """Is it in the rows of the decoder?"""
    draw: int = 0
    """The number of its draw in the micro-batch."""


class BatchBuilder(Dataset[Batch]):
    """Maps a `MicroBatchPlan` to a `Batch`; can be pickled, for spawned workers."""

    def __init__(
        self,
        mixture: Mixture,
        vocabulary: Vocabulary,
        *,
        micro_rows: int,
        row_length: int,
        num_aux_rows: dict[str, int],
        target_capacity: int | None,
        seed: int,
        stage: int,
        schedules: StageSchedules | None = None,
    ) -> None:
        self.mixture, self.vocabulary = mixture, vocabulary
        self.micro_rows, self.row_length = micro_rows, row_length
        self.num_aux_rows, self.target_capacity = num_aux_rows, target_capacity
        self._objectives = ObjectivesOfStep(schedules)
        self._generator = _Generators()
        self._keys = [
            {
                name: key_of(seed, stage, "masks", component.name, name)
                for name, _ in mixture.streams[component.stream].objectives
            }
            for component in mixture.components
        ]

    @override
    def __getitem__(self, plan: MicroBatchPlan) -> Batch:
        return self.build(plan)[0]

    def build(self, plan: MicroBatchPlan) -> tuple[Batch, list[PlacedSequence]]:
        """A micro-batch, and where each of its sequences is: what `isoglot show batch` draws."""
        main = RowBuffer(self.micro_rows, self.row_length, self.vocabulary.pad)
        aux = {
            name: RowBuffer(rows, self.row_length, self.vocabulary.pad)
            for name, rows in self.num_aux_rows.items()
        }
        targets = TargetCollector()
        everything: list[PlacedSequence] = []
        for draw in range(len(plan.draws.components)):
            built = self._build_draw(plan, draw)
            # an objective may read sequences of another one, so all are placed before any is read
            placed = self._place_draw(built, plan, draw, main, aux)
            _collect_draw(built, placed, targets)
            everything += placed
        return self._batch(main, aux, targets, plan), everything

    def _build_draw(self, plan: MicroBatchPlan, draw: int) -> list[_Built]:
        """The sequences of one draw, objective by objective."""
        number, counter = int(plan.draws.components[draw]), int(plan.draws.counters[draw])
        component, keys = self.mixture.components[number], self._keys[number]
        examples, index = component.locate(int(plan.draws.examples[draw]))
        try:
            example = examples.example(index, float(plan.draws.uniforms[draw]))
            built: dict[str, tuple[Sequence, ...]] = {}
            # an objective that depends on others is built after them
            for name, objective in sorted(
                component.objectives, key=lambda named: bool(named[1].depends_on())
            ):
                rng = self._generator(keys[name], counter)
                if depends_on := objective.depends_on():
                    bases = tuple(one for base in depends_on for one in built.get(base, ()))
                    built[name] = objective.build_from(bases, self.vocabulary, rng)
                else:
                    own = self._objectives.at(plan.step, name, objective)
                    built[name] = self._build(own, example, rng, plan)
            return [(name, objective, built[name]) for name, objective in component.objectives]
        except Exception as error:
            raise IsoglotError(f"{examples.where(index)}: {error}") from error

    def _build(
        self,
        objective: Objective,
        example: Example,
        rng: Rng,
        plan: MicroBatchPlan,  # noqa: ARG002 (padded batches read it)
    ) -> tuple[Sequence, ...]:
        return objective.build(example, self.vocabulary, rng)

    def _place_draw(
        self,
        built: list[_Built],
        plan: MicroBatchPlan,
        draw: int,
        main: RowBuffer,
        aux: dict[str, RowBuffer],
    ) -> list[PlacedSequence]:
        """Write the sequences of a draw into the rows that the plan has for them."""
        number = int(plan.draws.starts[draw])
        placed: list[PlacedSequence] = []
        for name, objective, sequences in built:
            if objective.marks_bases():
                continue  # its sequences are those of another objective
            num_main = len(sequences) - objective.num_aux_sequences
            for place, sequence in enumerate(sequences):
                assert len(sequence) <= plan.draws.lengths[number], (name, len(sequence))
                is_aux = place >= num_main
                buffer = aux[name] if is_aux else main
                start = buffer.put(sequence, int(plan.rows[number]), int(plan.offsets[number]))
                placed.append(PlacedSequence(name, objective, sequence, start, is_aux, draw=draw))
                number += 1
        return placed

    def _batch(
        self,
        main: RowBuffer,
        aux: dict[str, RowBuffer],
        collected: TargetCollector,
        plan: MicroBatchPlan,
    ) -> Batch:
        names = dict.fromkeys(name for s in self.mixture.streams for name, _ in s.objectives)
        positions, targets, slices = collected.concatenate(names)
        filled = len(positions)
        spare = 0 if self.target_capacity is None else self.target_capacity - filled
        assert spare >= 0, "the planner keeps the target positions within their capacity"
        weights = torch.zeros(filled + spare)
        weights[:filled] = 1.0
        return Batch(
            rows=main.rows(),
            target_positions=torch.from_numpy(np.pad(positions, (0, spare))),
            targets=torch.from_numpy(np.pad(targets, (0, spare))),
            target_weights=weights,
            target_slices=slices,
            markers=_tensors(collected.markers),
            aux_rows={name: buffer.rows() for name, buffer in aux.items()},
            aux_markers=_tensors(collected.aux_markers),
            labels=_tensors(collected.labels),
            num_targets=self._num_targets(slices, collected),
            num_tokens=main.num_tokens,
            cursor=plan.cursor,
        )

    def _num_targets(
        self, slices: dict[str, tuple[int, int]], collected: TargetCollector
    ) -> dict[str, int]:
        """Predictions of each objective: its target tokens, its markers, or its bases' tokens."""
        counts = {name: stop - start for name, (start, stop) in slices.items()}
        for stream in self.mixture.streams:
            for name, objective in stream.objectives:
                if objective.target_marker is not None:
                    places = collected.markers.get(name, {}).get(objective.target_marker, [])
                    counts[name] = sum(map(len, places))
                elif objective.depends_on():
                    bases = [slices[base] for base in objective.depends_on() if base in slices]
                    counts[name] = sum(stop - start for start, stop in bases)
        return counts


def _collect_draw(
    built: list[_Built], placed: list[PlacedSequence], targets: TargetCollector
) -> None:
    """Collect the targets, markers and labels of a draw, once its sequences have their places."""

    def base_starts(objective: Objective) -> list[int]:
        """Flat indices of the first tokens of the sequences that an objective depends on."""
        return [
            one.start
            for base in objective.depends_on()
            for one in placed
            if one.name == base and not one.is_aux
        ]

    for one in placed:
        bases = base_starts(one.objective) if one.objective.base_markers else []
        targets.collect(one, base_start=next(iter(bases), None))
    for name, objective, sequences in built:
        if objective.marks_bases():
            for sequence, start in zip(sequences, base_starts(objective), strict=True):
                targets.mark(name, sequence, start)


class RowBuffer:
    """Rows of one shape into which sequences are written."""

    def __init__(self, rows: int, row_length: int, pad: int) -> None:
        self.fields = np.zeros((len(_FIELDS), rows, row_length), np.int64)
        self.fields[0] = pad
        self.fields[_FIELDS.index("sequences")] = -1
        self.num_sequences = np.zeros(rows, np.int64)
        self.num_tokens = 0

    def put(self, sequence: Sequence, row: int, offset: int) -> int:
        """Write a sequence into a row; gives the flat index of its first token."""
        place = self.fields[:, row, offset : offset + len(sequence)]
        for number, name in enumerate(_FIELDS[:5]):
            place[number] = getattr(sequence, name)
        place[5] = int(sequence.rule)
        place[6] = self.num_sequences[row]
        self.num_sequences[row] += 1
        self.num_tokens += len(sequence)
        return row * self.fields.shape[2] + offset

    def rows(self) -> Rows:
        """The finished rows."""
        tensors = torch.from_numpy(self.fields).unbind()
        rows = Rows(**dict(zip(_FIELDS, tensors, strict=True)))
        rules, sequences = self.fields[-2:]
        rows.unmasked = bool((sequences == 0).all() and (rules == MaskRule.FULL).all())
        return rows


_NamedArrays = dict[str, dict[str, list[LongArray]]]
"""objective -> marker or label -> flat indices or numbers, an array for each sequence."""


class TargetCollector:
    """Collects target positions, markers and labels, objective by objective."""

    def __init__(self) -> None:
        self.positions: dict[str, list[LongArray]] = {}
        self.targets: dict[str, list[LongArray]] = {}
        self.markers: _NamedArrays = {}
        self.aux_markers: _NamedArrays = {}
        self.labels: _NamedArrays = {}

    def collect(self, placed: PlacedSequence, *, base_start: int | None) -> None:
        """Add a sequence's targets, markers and labels.

        `base_start` is the flat index of the first token of the sequence that its objective
        depends on: `base_markers` are positions in that one.
        """
        name, sequence, start = placed.name, placed.sequence, placed.start
        where = np.flatnonzero(sequence.targets != IGNORE)
        assert not (placed.is_aux and len(where)), "auxiliary rows have no LM head"
        if not placed.is_aux:
            self.positions.setdefault(name, []).append(start + where)
            self.targets.setdefault(name, []).append(sequence.targets[where].astype(np.int64))
        markers = (self.aux_markers if placed.is_aux else self.markers).setdefault(name, {})
        for marker, places in sequence.markers.items():
            if marker in placed.objective.base_markers:
                assert base_start is not None, "the base's sequence is in the main rows"
                in_base = self.markers.setdefault(name, {})
                in_base.setdefault(marker, []).append(base_start + places)
            else:
                markers.setdefault(marker, []).append(start + places)
        self._add_labels(name, sequence)

    def mark(self, name: str, sequence: Sequence, start: int) -> None:
        """Add an objective's markers and labels in a sequence of another one, which is placed."""
        markers = self.markers.setdefault(name, {})
        for marker, places in sequence.markers.items():
            markers.setdefault(marker, []).append(start + places)
        self._add_labels(name, sequence)

    def _add_labels(self, name: str, sequence: Sequence) -> None:
        labels = self.labels.setdefault(name, {})
        for label, numbers in sequence.labels.items():
            labels.setdefault(label, []).append(numbers)

    def concatenate(
        self, names: Iterable[str]
    ) -> tuple[LongArray, LongArray, dict[str, tuple[int, int]]]:
        """All target positions and targets, and the slice of each objective."""
        none = np.zeros(0, np.int64)
        positions, targets, slices, filled = [none], [none], {}, 0
        for name in names:
            where = np.concatenate([none, *self.positions.get(name, [])])
            positions.append(where)
            targets.append(np.concatenate([none, *self.targets.get(name, [])]))
            slices[name] = (filled, filled + len(where))
            filled += len(where)
        return np.concatenate(positions), np.concatenate(targets), slices


def _tensors(arrays: _NamedArrays) -> dict[str, dict[str, torch.Tensor]]:
    return {
        objective: {name: torch.from_numpy(np.concatenate(some)) for name, some in of.items()}
        for objective, of in arrays.items()
    }


class _Generators:
    """The generator of each draw: one counter-based generator that is given another key.

    A new generator for every draw would take four times as long.
    """

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=np.zeros(2, np.uint64))
        self._generator = np.random.Generator(self._bits)
        self._fresh: Any = self._bits.state

    def __call__(self, key: int, counter: int) -> np.random.Generator:
        """The generator of a key and a counter; invalidates the one returned before."""
        self._fresh["state"]["key"][:] = (key, counter)
        self._bits.state = self._fresh
        return self._generator
