"""Batching written the slow and obvious way: Python numbers and loops, one draw after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.counter_rng import key_of
from isoglot.types import Cursor, Draw

if TYPE_CHECKING:
    from isoglot.batching.mixture import Component, Mixture
    from isoglot.batching.planner import BatchConfig

_ALL = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def scramble(value: int) -> int:
    """SplitMix64's finalizer (Steele et al., 2014)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _ALL
    return value ^ (value >> 31)


def uniform(key: int, counter: int) -> float:
    """The random number in [0, 1) of a counter."""
    bits = scramble((counter * _STEP + key) & _ALL)
    return (scramble((bits + _STEP) & _ALL) >> 11) / 2**53


def permute(n: int, key: int, index: int) -> int:
    """Six rounds of a Feistel network over the smallest even power of two, walked into range."""
    half = 1
    while 4**half < n:
        half += 1
    keys = [scramble((number + key) & _ALL) for number in range(1, 7)]
    while True:
        left, right = index >> half, index & (2**half - 1)
        for one in keys:
            left, right = right, left ^ (scramble((right + one) & _ALL) & (2**half - 1))
        index = (left << half) | right
        if index < n:
            return index


@dataclass
class NaiveDraw:
    """A draw, its example, and its sequences as (group, length)."""

    component: int
    counter: int
    example: int
    uniform: float
    sequences: list[tuple[int, int]]
    targets: int
    places: list[tuple[int, int]] = field(default_factory=list)
    """Row and offset of each sequence, once placed."""

    @property
    def tokens(self) -> int:
        """Tokens in the main rows."""
        return sum(length for group, length in self.sequences if group == 0)


def look_up(mixture: Mixture, aux_groups: dict[str, int], number: int, counter: int) -> NaiveDraw:
    """The draw of a component and a counter."""
    component = mixture.components[number]
    epoch, offset = divmod(counter, component.num_examples)
    seed, stage = component._seed, component._stage
    example = permute(component.num_examples, key_of(seed, stage, component.name, epoch), offset)
    chance = uniform(key_of(seed, stage, "chances", component.name), counter)
    sizes = _sizes(component, example, chance)
    sequences, targets = [], 0
    for name, objective in component.objectives:
        lengths = objective.lengths(sizes)[0].tolist()
        num_main = len(lengths) - objective.num_aux_sequences
        for place, length in enumerate(lengths):
            sequences.append((0 if place < num_main else aux_groups[name], length))
        targets += int(objective.max_targets(sizes)[0])
    return NaiveDraw(number, counter, example, chance, sequences, targets)


def _sizes(component: Component, example: int, chance: float) -> np.ndarray:
    for one in component.slices:
        if example < one.num_examples:
            return one.sizes(np.array([example]), np.array([chance]))
        example -= one.num_examples
    raise AssertionError("no such example")


def component_of(mixture: Mixture, number: int, *, seed: int, stage: int) -> int:
    """The component of the draw of a number."""
    point, total = uniform(key_of(seed, stage, "cells"), number), 0.0
    for index, probability in enumerate(mixture.probabilities.tolist()):
        total += probability
        if point < total:
            return index
    return len(mixture.components) - 1


def pack(
    draws: list[NaiveDraw],
    room: list[list[list[int]]],
    target_room: list[int],
    row_length: int,
) -> list[int]:
    """The micro-batch of each draw, -1 if it has no place; `room` is [micro][group][row]."""
    found = []
    for draw in draws:
        free = [sum(micro[0]) for micro in room]
        order = sorted(range(len(room)), key=lambda m: (-free[m], m))
        found.append(-1)
        for micro in order:
            if draw.targets > target_room[micro]:
                continue
            rows = [list(group) for group in room[micro]]
            places = []
            for group, length in draw.sequences:
                fitting = [r for r, left in enumerate(rows[group]) if left >= length]
                if not fitting:
                    break
                row = min(fitting, key=lambda r: (rows[group][r], r))
                places.append((row, row_length - rows[group][row]))
                rows[group][row] -= length
            else:
                room[micro] = rows
                target_room[micro] -= draw.targets
                draw.places = places
                found[-1] = micro
                break
    return found


def plan(
    mixture: Mixture,
    shape: BatchConfig,
    cursor: Cursor,
    *,
    aux_rows: dict[str, int],
    target_capacity: int | None,
    seed: int,
    stage: int,
) -> tuple[list[list[NaiveDraw]], Cursor]:
    """The draws of each micro-batch of a step, in the order of the pool, and the next cursor."""
    groups = {name: number for number, name in enumerate(aux_rows, 1)}
    pool = [look_up(mixture, groups, *draw) for draw in cursor.pending]
    num_pending = len(pool)
    counters = [*cursor.counters, *[0] * (len(mixture.components) - len(cursor.counters))]
    wanted = shape.rows * shape.row_length * (1 + shape.lookahead) + 2 * shape.row_length
    tokens, number = sum(draw.tokens for draw in pool), cursor.draws
    while tokens < wanted:
        component = component_of(mixture, number, seed=seed, stage=stage)
        pool.append(look_up(mixture, groups, component, counters[component]))
        counters[component] += 1
        tokens += pool[-1].tokens
        number += 1
    old, new = pool[:num_pending], pool[num_pending:]
    ordered = [d for part in (old, new) for d in sorted(part, key=lambda draw: -draw.tokens)]
    micro_rows = [[shape.row_length] * shape.micro_batch_rows]
    micro_rows += [[shape.row_length] * aux_rows[name] for name in groups]
    num_micro = shape.rows // shape.micro_batch_rows
    room = [[list(group) for group in micro_rows] for _ in range(num_micro)]
    limit = 10**18 if target_capacity is None else target_capacity
    found = pack(ordered, room, [limit] * num_micro, shape.row_length)
    micro_of = {id(draw): micro for draw, micro in zip(ordered, found, strict=True)}
    batches = [[d for d in pool if micro_of[id(d)] == micro] for micro in range(num_micro)]
    pending = tuple(Draw(d.component, d.counter) for d in pool if micro_of[id(d)] < 0)
    return batches, Cursor(step=cursor.step + 1, counters=tuple(counters), pending=pending)


def probabilities(
    streams: list[tuple[float, float, list[tuple[str, float, float]]]],
) -> list[float]:
    """Of each slice; a stream is its share, alpha, and (language, N, tokens of a draw) a slice."""
    found = []
    for share, alpha, slices in streams:
        totals: dict[str, float] = {}
        for language, number, _ in slices:
            totals[language] = totals.get(language, 0) + number
        whole = math.fsum(total**alpha for total in totals.values())
        of_slice = [
            totals[language] ** alpha / whole * number / totals[language]
            for language, number, _ in slices
        ]
        per_draw = math.fsum(p * mean for p, (_, _, mean) in zip(of_slice, slices, strict=True))
        found += [share * p / per_draw for p in of_slice]
    return [one / math.fsum(found) for one in found]
