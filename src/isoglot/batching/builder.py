"""A micro-batch from its plan: read the examples, let the objectives build, lay them into rows.

Runs in loader workers. All randomness comes from generators keyed by (seed, stage, cell, counter)
and the objective, so what is built depends on the plan alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Dataset
from typing_extensions import override

from isoglot.batching.permutation import key_of
from isoglot.errors import IsoglotError
from isoglot.types import IGNORE, Batch, LongArray, Rows, Rule, Sequence, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.batching.mixture import Mixture
    from isoglot.batching.planner import MicroPlan
    from isoglot.batching.streams import SequenceMaker
    from isoglot.types import Example

_FIELDS = ("ids", "positions", "languages", "sentences", "parts", "rules", "sequences")


class Builder(Dataset[Batch]):
    """Maps a `MicroPlan` to a `Batch`; pickles, for workers that are spawned."""

    def __init__(
        self,
        mixture: Mixture,
        vocabulary: Vocabulary,
        *,
        micro_rows: int,
        row_length: int,
        side_rows: dict[str, int],
        site_capacity: int | None,
        seed: int,
        stage: int,
    ) -> None:
        self.mixture, self.vocabulary = mixture, vocabulary
        self.micro_rows, self.row_length = micro_rows, row_length
        self.side_rows, self.site_capacity = side_rows, site_capacity
        self._generator = _Generators()
        self._keys = [
            {
                name: key_of(seed, stage, "masks", cell.name, name)
                for name, _ in mixture.streams[cell.stream].makers
            }
            for cell in mixture.cells
        ]

    @override
    def __getitem__(self, plan: MicroPlan) -> Batch:
        main = Canvas(self.micro_rows, self.row_length, self.vocabulary.pad)
        sides = {
            name: Canvas(rows, self.row_length, self.vocabulary.pad)
            for name, rows in self.side_rows.items()
        }
        found = Found()
        for draw in range(len(plan.cells)):
            place = int(plan.starts[draw])
            placed: list[tuple[str, SequenceMaker, Sequence, int, bool]] = []
            starts: dict[str, int] = {}
            for name, maker, sequences in self._build(plan, draw):
                for number, sequence in enumerate(sequences):
                    assert len(sequence) <= plan.lengths[place], (name, len(sequence))
                    on_side = number >= len(sequences) - maker.num_side
                    canvas = sides[name] if on_side else main
                    start = canvas.put(sequence, int(plan.rows[place]), int(plan.offsets[place]))
                    placed.append((name, maker, sequence, start, on_side))
                    if not on_side:
                        starts.setdefault(name, start)
                    place += 1
            for name, maker, sequence, start, on_side in placed:
                host = next((starts[host] for host in maker.hosts() if host in starts), None)
                found.note(name, maker, sequence, start, on_side=on_side, host=host)
        return self._batch(main, sides, found, plan)

    def _build(
        self, plan: MicroPlan, draw: int
    ) -> list[tuple[str, SequenceMaker, tuple[Sequence, ...]]]:
        """The sequences of one draw, objective by objective."""
        number, counter = int(plan.cells[draw]), int(plan.counters[draw])
        cell, keys = self.mixture.cells[number], self._keys[number]
        part, index = cell.locate(int(plan.examples[draw]))
        try:
            example = part.example(index, float(plan.chances[draw]))
            built: dict[str, tuple[Sequence, ...]] = {}
            # those that ride on others come after them
            for name, maker in sorted(cell.makers, key=lambda named: bool(named[1].hosts())):
                rng = self._generator(keys[name], counter)
                if hosts := maker.hosts():
                    hosted = tuple(one for host in hosts for one in built.get(host, ()))
                    built[name] = maker.ride(hosted, self.vocabulary, rng)
                else:
                    built[name] = self._sequences(maker, example, rng, plan)
            return [(name, maker, built[name]) for name, maker in cell.makers]
        except Exception as error:
            raise IsoglotError(f"{part.where(index)}: {error}") from error

    def _sequences(
        self,
        maker: SequenceMaker,
        example: Example,
        rng: np.random.Generator,
        plan: MicroPlan,  # noqa: ARG002 (padded batches look at it)
    ) -> tuple[Sequence, ...]:
        return maker.build(example, self.vocabulary, rng)

    def _batch(
        self, main: Canvas, sides: dict[str, Canvas], found: Found, plan: MicroPlan
    ) -> Batch:
        names = dict.fromkeys(name for s in self.mixture.streams for name, _ in s.makers)
        positions, targets, spans = found.listed(names)
        filled = len(positions)
        spare = 0 if self.site_capacity is None else self.site_capacity - filled
        assert spare >= 0, "the planner keeps the prediction sites within their capacity"
        weights = torch.zeros(filled + spare)
        weights[:filled] = 1.0
        return Batch(
            rows=main.rows(),
            positions=torch.from_numpy(np.pad(positions, (0, spare))),
            targets=torch.from_numpy(np.pad(targets, (0, spare))),
            weights=weights,
            spans=spans,
            sites=_tensors(found.sites),
            side={name: canvas.rows() for name, canvas in sides.items()},
            side_sites=_tensors(found.side_sites),
            labels=_tensors(found.labels),
            counts=self._counts(spans, found),
            num_tokens=main.num_tokens,
            cursor=plan.cursor,
        )

    def _counts(self, spans: dict[str, tuple[int, int]], found: Found) -> dict[str, int]:
        """How many things each objective predicts: tokens, its hosts', or the sites it names."""
        counts = {name: stop - start for name, (start, stop) in spans.items()}
        for stream in self.mixture.streams:
            for name, maker in stream.makers:
                if maker.counts is not None:
                    places = found.sites.get(name, {}).get(maker.counts, [])
                    counts[name] = sum(map(len, places))
                elif maker.hosts():
                    own = [spans[host] for host in maker.hosts() if host in spans]
                    counts[name] = sum(stop - start for start, stop in own)
        return counts


class Canvas:
    """Rows being filled."""

    def __init__(self, rows: int, row_length: int, pad: int) -> None:
        self.fields = np.zeros((len(_FIELDS), rows, row_length), np.int64)
        self.fields[0] = pad
        self.fields[_FIELDS.index("sequences")] = -1
        self.num_sequences = np.zeros(rows, np.int64)
        self.num_tokens = 0

    def put(self, sequence: Sequence, row: int, offset: int) -> int:
        """Lay a sequence into a row; gives the flat index of its first token."""
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
        rows.whole = bool((sequences == 0).all() and (rules == Rule.FULL).all())
        return rows


Named = dict[str, dict[str, list[LongArray]]]
"""objective -> name of a site or label -> flat indices or numbers, an array for each sequence."""


class Found:
    """Prediction sites, named sites and labels, collected objective by objective."""

    def __init__(self) -> None:
        self.positions: dict[str, list[LongArray]] = {}
        self.targets: dict[str, list[LongArray]] = {}
        self.sites: Named = {}
        self.side_sites: Named = {}
        self.labels: Named = {}

    def note(
        self,
        objective: str,
        maker: SequenceMaker,
        sequence: Sequence,
        start: int,
        *,
        on_side: bool,
        host: int | None,
    ) -> None:
        """Remember where a sequence laid at `start`, its host's at `host`, has its sites."""
        where = np.flatnonzero(sequence.targets != IGNORE)
        assert not (on_side and len(where)), "only the main rows meet the LM head"
        if not on_side:
            self.positions.setdefault(objective, []).append(start + where)
            self.targets.setdefault(objective, []).append(sequence.targets[where].astype(np.int64))
        sites = (self.side_sites if on_side else self.sites).setdefault(objective, {})
        for name, places in sequence.sites.items():
            if name in maker.host_sites:
                assert host is not None, "who rides has a host in the main rows"
                of_host = self.sites.setdefault(objective, {})
                of_host.setdefault(name, []).append(host + places)
            else:
                sites.setdefault(name, []).append(start + places)
        labels = self.labels.setdefault(objective, {})
        for name, numbers in sequence.labels.items():
            labels.setdefault(name, []).append(numbers)

    def listed(
        self, names: Iterable[str]
    ) -> tuple[LongArray, LongArray, dict[str, tuple[int, int]]]:
        """Flat indices and targets of all prediction sites, and the slice of each objective."""
        none = np.zeros(0, np.int64)
        positions, targets, spans, filled = [none], [none], {}, 0
        for name in names:
            where = np.concatenate([none, *self.positions.get(name, [])])
            positions.append(where)
            targets.append(np.concatenate([none, *self.targets.get(name, [])]))
            spans[name] = (filled, filled + len(where))
            filled += len(where)
        return np.concatenate(positions), np.concatenate(targets), spans


def _tensors(sites: Named) -> dict[str, dict[str, torch.Tensor]]:
    return {
        objective: {name: torch.from_numpy(np.concatenate(places)) for name, places in of.items()}
        for objective, of in sites.items()
    }


class _Generators:
    """The generator of each draw: one counter-based generator, given another key.

    A new one for every draw would take four times as long.
    """

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=np.zeros(2, np.uint64))
        self._generator = np.random.Generator(self._bits)
        self._fresh: Any = self._bits.state

    def __call__(self, key: int, counter: int) -> np.random.Generator:
        """The generator of a key and a counter; the one handed out before is spent."""
        self._fresh["state"]["key"][:] = (key, counter)
        self._bits.state = self._fresh
        return self._generator
