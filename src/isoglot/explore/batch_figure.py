"""Figures of a micro-batch: one draw with all its sequences and masks, or the mask of a row.

The figures of `docs/objectives.md` are those of one draw of the testbed (`docs/figures.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isoglot.explore.batch_html import PALETTE
from isoglot.explore.batch_svg import compact_matrix, matrix_block, sequence_block
from isoglot.explore.drawn_batch import DrawnToken, attention, cross_attention
from isoglot.explore.svg_figure import Block, Figure
from isoglot.objectives.neighbors import find_neighbors, layout_of_rows, original_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.explore.drawn_batch import DrawnBatch, DrawnRow, DrawnSequence
    from isoglot.objectives.cooccurrence import Cooccurrence
    from isoglot.types import BoolArray, Vocabulary

MAX_LABELED = 64
"""Tokens of a matrix that has its tokens beside it."""
MAX_MASK_TOKENS = 2048
"""Tokens of a matrix that is drawn at all."""

_PADDING = DrawnToken(text="padding", kind="special", position=0, language="")
_PARTS = {
    "main": "",
    "auxiliary": ", auxiliary row",
    "decoder": ", decoder: input and, below, targets",
}


def draw_figure(drawn: DrawnBatch, draw: int, *, label: str) -> Figure:
    """The sequences of one draw, and who attends to whom where a rule restricts it."""
    figure = Figure(label)
    found = [
        (row, one)
        for row in drawn.rows
        for one in row.sequences
        if one.draw == draw and len(one.tokens)
    ]
    found.sort(key=lambda pair: pair[1].number)
    found = list(
        zip((row for row, _ in found), _renumbered([one for _, one in found]), strict=True)
    )
    masks: list[Block] = []
    for number, (row, one) in enumerate(found, 1):
        color = PALETTE[(number - 1) % len(PALETTE)]
        name = f"{number}. {one.objective}, {one.origin}{_PARTS[row.part]}"
        title = f"{name}; mask rule: {_rule(row, one)}"
        figure.add(sequence_block(one, title=title, color=color))
        restricted = not attention(row, one.start, one.start + len(one.tokens)).all()
        if restricted or len(found) == 1:
            masks.append(sequence_mask(row, one, color=color, title=f"sequence {number}"))
        if row.part == "decoder" and (cross := _cross_mask(drawn, row, color)) is not None:
            masks.append(cross)
    figure.add(*masks)
    return figure


def _renumbered(sequences: list[DrawnSequence]) -> list[DrawnSequence]:
    """The sequences of one draw, with markers that are numbered from 1 in it."""
    first: dict[str, int] = {}
    for name, number in _numbered_markers(sequences):
        first[name] = min(number, first.get(name, number))

    def changed(marker: str) -> str:
        name, _, number = marker.rpartition(" ")
        return f"{name} {int(number) - first[name] + 1}" if name in first else marker

    return [
        replace(
            one,
            tokens=tuple(replace(t, markers=tuple(map(changed, t.markers))) for t in one.tokens),
        )
        for one in sequences
    ]


def _numbered_markers(sequences: list[DrawnSequence]) -> Iterator[tuple[str, int]]:
    for one in sequences:
        for marker in (marker for token in one.tokens for marker in token.markers):
            name, _, number = marker.rpartition(" ")
            if name:
                yield name, int(number)


def _rule(row: DrawnRow, sequence: DrawnSequence) -> str:
    return "causal" if row.part == "decoder" else sequence.rule.name.lower()


def row_figure(row: DrawnRow, *, label: str) -> Figure:
    """The sequences of one row, and the mask of the whole row."""
    figure = Figure(label)
    for number, one in enumerate(row.sequences):
        title = f"{number + 1}. {one.objective}, {one.origin}; mask rule: {_rule(row, one)}"
        color = PALETTE[number % len(PALETTE)]
        figure.add(sequence_block(one, title=title, color=color))
    figure.add(row_mask(row))
    return figure


def sequence_mask(row: DrawnRow, sequence: DrawnSequence, *, color: str, title: str) -> Block:
    """The mask of one sequence, with its tokens beside it while they are few."""
    start, tokens = sequence.start, sequence.tokens
    allowed = attention(row, start, start + len(tokens))
    title = f"{title}: row attends to column"
    if len(tokens) > MAX_LABELED:
        return compact_matrix(allowed, tokens, title=title, colors=[color] * len(tokens))
    return matrix_block(allowed, tokens, tokens, title=title, colors=[color] * len(tokens))


def row_mask(row: DrawnRow) -> Block:
    """The mask of a whole row: no sequence attends to another, padding to itself alone."""
    colors = ["currentColor"] * row.length
    tokens: list[DrawnToken | None] = [None] * row.length
    for number, one in enumerate(row.sequences):
        stop = one.start + len(one.tokens)
        tokens[one.start : stop] = one.tokens
        colors[one.start : stop] = [PALETTE[number % len(PALETTE)]] * len(one.tokens)
    title = f"{row.title}: row attends to column"
    if row.length > MAX_LABELED:
        return compact_matrix(attention(row), tokens, title=title, colors=colors)
    named = [_PADDING if token is None else token for token in tokens]
    return matrix_block(attention(row), named, named, title=title, colors=colors)


def _cross_mask(drawn: DrawnBatch, row: DrawnRow, color: str) -> Block | None:
    """What the decoder attends to in its source; none where a model has yet to write the source."""
    allowed, source = cross_attention(drawn, row)
    keys = [token for one in source.sequences for token in one.tokens]
    if all(token.kind == "special" for token in keys):
        return None
    queries = [token for one in row.sequences for token in one.tokens]
    return matrix_block(
        allowed[:, : len(keys)],
        queries,
        keys,
        title="cross-attention: decoder to encoder",
        colors=[color] * len(queries),
    )


def pairs_figure(
    drawn: DrawnBatch, draw: int, settings: Cooccurrence, vocabulary: Vocabulary, *, label: str
) -> Figure:
    """One draw, and the pairs of tokens whose products `cooccurrence` regresses on counts."""
    figure = Figure(label)
    ((row, one),) = [
        (row, one)
        for row in drawn.rows
        for one in row.sequences
        if one.draw == draw and row.part == "main"
    ]
    names = f"{one.objective}, {one.origin}; mask rule: {_rule(row, one)}"
    figure.add(sequence_block(one, title=names))
    allowed = regressed_pairs(drawn, row, one, settings, vocabulary)
    rows = [place for place, token in enumerate(one.tokens) if token.target is not None]
    queries = [one.tokens[place] for place in rows]
    title = f"states that are multiplied: masked token × neighbor, window {settings.pairs.window}"
    colors = [PALETTE[1]] * len(rows)
    figure.add(matrix_block(allowed[rows], queries, one.tokens, title=title, colors=colors))
    return figure


def regressed_pairs(
    drawn: DrawnBatch,
    row: DrawnRow,
    sequence: DrawnSequence,
    settings: Cooccurrence,
    vocabulary: Vocabulary,
) -> BoolArray:
    """(n, n) which masked token of a sequence is paired with which neighbor, for the encoder."""
    import torch

    batch = drawn.batch
    names = [name for name in settings.target_objectives if name in batch.target_slices]
    targets = torch.cat([batch.target_positions[slice(*batch.target_slices[n])] for n in names])
    candidates = ~torch.from_numpy(vocabulary.is_special)[original_ids(batch)]
    if settings.neighbors != "all":
        masked = batch.rows.ids.flatten() == vocabulary.mask
        candidates &= masked if settings.neighbors == "masked" else ~masked
    near = find_neighbors(layout_of_rows(batch.rows), targets, candidates, settings.pairs.window)
    first = row.number * row.length + sequence.start
    found = np.zeros((len(sequence.tokens),) * 2, np.bool_)
    for target, places, exists in zip(targets.tolist(), near.places, near.exists, strict=True):
        if first <= target < first + len(found):
            found[target - first, places[exists].numpy() - first] = True
    return found


def mask_svg(row: DrawnRow, sequence: int | None) -> str:
    """The mask of a row, or of its n-th sequence, for a page; empty if it has too many tokens."""
    length = row.length if sequence is None else len(row.sequences[sequence].tokens)
    if length > MAX_MASK_TOKENS:
        return ""
    figure = Figure(f"attention mask of {row.title}", width=0)
    if sequence is None:
        figure.add(row_mask(row))
    else:
        one, color = row.sequences[sequence], PALETTE[sequence % len(PALETTE)]
        title = f"sequence {sequence} of {row.title}, mask rule {_rule(row, one)}"
        figure.add(sequence_mask(row, one, color=color, title=title))
    return figure.svg(standalone=False)
