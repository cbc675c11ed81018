"""Sequences and attention masks as blocks of a figure (`svg_figure.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.explore.batch_html import MAX_TOKEN_CHARACTERS, PALETTE, runs
from isoglot.explore.svg_figure import WIDTH, Block, cut_text, px, text_element, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.explore.drawn_batch import DrawnSequence, DrawnToken
    from isoglot.types import BoolArray

_FONT, _SMALL, _TINY = 13, 11, 10
_GAP, _PADDING = 4, 5
_LABEL_WIDTH = 58
_FILLS = {"masked": 0.42, "replaced": 0.42, "kept": 0.42, "special": 0.0, "slot": 0.0}
_MARKS = {"slot": "4 3", "replaced": "1 2"}
"""Dash patterns of outlines."""
_CELL = 15
"""Side of a square of a matrix, at most."""
_SMALL_CELL = 6
"""Squares of a matrix up to this size are joined."""
_MAX_LABEL = 14
"""Characters of a token beside a matrix."""


def sequence_block(
    sequence: DrawnSequence, *, title: str, color: str = PALETTE[0], width: float = WIDTH
) -> Block:
    """A sequence as boxes, wrapped at a width, under a title."""
    parts = [text_element(title, 0, 12, size=_SMALL, anchor="start", css="muted")]
    top = 20.0
    for tokens, right_to_left in runs(sequence):
        said = f"{tokens[0].language}{' slots' if tokens[0].kind == 'slot' else ''}"
        parts.append(text_element(said, 8, top + 15, size=_TINY, anchor="start", css="muted"))
        line: list[DrawnToken] = []
        room = width - _LABEL_WIDTH
        lines: list[list[DrawnToken]] = []
        used = 0.0
        for token in tokens:
            needed = _box_width(token) + _GAP
            if line and used + needed > room:
                lines.append(line)
                line, used = [], 0.0
            line.append(token)
            used += needed
        lines.append(line)
        for some in lines:
            height = max(map(_box_height, some))
            left = float(_LABEL_WIDTH)
            for token in some:
                box = _box_width(token)
                place = width - (left - _LABEL_WIDTH) - box if right_to_left else left
                parts.append(_box(token, place, top, box, color))
                left += box + _GAP
            top += height + 5
    bar = f'<rect x="0" y="18" width="3" height="{px(top - 20)}" fill="{color}"/>'
    return Block(width, top + 2, bar + "".join(parts))


def _box_width(token: DrawnToken) -> float:
    texts = [(token.text, _FONT), *((marker, _TINY) for marker in token.markers)]
    if token.target is not None:
        texts.append((token.target, _SMALL))
    widths = [text_width(cut_text(text, MAX_TOKEN_CHARACTERS), size) for text, size in texts]
    return max(18.0, round(max(widths) + 2 * _PADDING, 1))


def _box_height(token: DrawnToken) -> float:
    return 20.0 + (14 if token.target is not None else 0) + 13 * len(token.markers)


def _box(token: DrawnToken, left: float, top: float, width: float, color: str) -> str:
    """The box of a token: its text, its target below it, its markers under both."""
    gray = token.kind == "special"
    middle = left + width / 2
    height = 20 + (14 if token.target is not None else 0)
    parts = [
        f'<rect x="{px(left)}" y="{px(top)}" width="{px(width)}" '
        f'height="{height}" rx="4" fill="{color}" fill-opacity="{_FILLS.get(token.kind, 0.1)}" '
        f'stroke="{"currentColor" if gray else color}" '
        f'stroke-opacity="{0.35 if gray else 1}"'
        + (f' stroke-dasharray="{_MARKS[token.kind]}"' if token.kind in _MARKS else "")
        + (' stroke-width="1.6"' if token.kind in _MARKS else "")
        + "/>",
        text_element(token.text, middle, top + 14.5, size=_FONT, decorate=token.kind == "kept"),
    ]
    if token.target is not None:
        parts.append(text_element(token.target, middle, top + 29, size=_SMALL, weight=600))
    for number, marker in enumerate(token.markers):
        parts.append(
            text_element(f"▴{marker}", middle, top + height + 10 + 13 * number, size=_TINY)
        )
    return "".join(parts)


def matrix_block(
    allowed: BoolArray,
    queries: Sequence[DrawnToken],
    keys: Sequence[DrawnToken],
    *,
    title: str,
    colors: Sequence[str],
) -> Block:
    """Which query (row) attends to which key (column), in the query's color; slots are darker."""
    rows, columns = (
        [_label(token, is_query=is_query) for token in tokens]
        for tokens, is_query in ((queries, True), (keys, False))
    )
    beside = max((text_width(text, _TINY) for text in rows), default=0) + 6
    above = max((text_width(text, _TINY) for text in columns), default=0) + 6
    cell = min(_CELL, (WIDTH - beside) / max(1, len(keys)))
    top, parts = 20 + above, [text_element(title, 0, 12, size=_SMALL, anchor="start", css="muted")]
    for number, text in enumerate(columns):
        place = beside + cell * (number + 0.5)
        parts.append(
            f'<g transform="translate({px(place + 3.5)} {px(top - 4)}) rotate(-90)">'
            f"{text_element(text, 0, 0, size=_TINY, anchor='start')}</g>"
        )
    for number, (text, token) in enumerate(zip(rows, queries, strict=True)):
        middle = top + cell * (number + 0.5) + 3.5
        parts.append(text_element(text, beside - 5, middle, size=_TINY, anchor="end"))
        place, opacity = top + cell * number, _opacity(token)
        parts.append(cells(allowed[number], beside, place, cell, colors[number], opacity))
    width, height = beside + cell * len(keys), top + cell * len(queries)
    frame = (
        f'<rect x="{px(beside)}" y="{px(top)}" width="{px(cell * len(keys))}" '
        f'height="{px(cell * len(queries))}" fill="none" stroke="currentColor" '
        'stroke-opacity=".35"/>'
    )
    needed = max(width, text_width(title, _SMALL))
    return Block(needed + 2, height + 4, "".join(parts) + frame)


def _opacity(token: DrawnToken) -> float:
    return 1.0 if token.kind == "slot" else 0.55


def compact_matrix(
    allowed: BoolArray,
    queries: Sequence[DrawnToken | None],
    *,
    title: str,
    colors: Sequence[str],
) -> Block:
    """A matrix without labels, as wide as a figure, for many tokens; none is padding."""
    number = len(allowed)
    cell = WIDTH / number
    parts = [text_element(title, 0, 12, size=_SMALL, anchor="start", css="muted")]
    for place, token in enumerate(queries):
        opacity = 0.3 if token is None else _opacity(token)
        top = 20 + cell * place
        parts.append(cells(allowed[place], 0, top, cell, colors[place], opacity))
    frame = (
        f'<rect x="0" y="20" width="{WIDTH}" height="{WIDTH}" fill="none" stroke="currentColor" '
        'stroke-opacity=".35"/>'
    )
    return Block(WIDTH, WIDTH + 24, "".join(parts) + frame)


def cells(
    allowed: BoolArray, left: float, top: float, cell: float, color: str, opacity: float
) -> str:
    """The squares of one query; small ones are joined to bars."""
    keys = np.flatnonzero(allowed)
    apart = cell > _SMALL_CELL
    breaks = np.arange(1, len(keys)) if apart else 1 + np.flatnonzero(np.diff(keys) > 1)
    inset = 0.75 if apart else 0
    height = cell - 2 * inset
    bars = []
    for run in np.split(keys, breaks) if len(keys) else []:
        x, width = left + cell * run[0] + inset, cell * len(run) - 2 * inset
        bars.append(f"M{px(x)} {px(top + inset)}h{px(width)}v{px(height)}h-{px(width)}z")
    drawn = "".join(bars)
    return f'<path fill="{color}" fill-opacity="{opacity}" d="{drawn}"/>' if bars else ""


def _label(token: DrawnToken, *, is_query: bool) -> str:
    """The token beside a matrix, without the mark of a word's start; of a query also its target."""
    text = cut_text(token.text.removeprefix(SPACE_MARK) or SPACE_MARK, _MAX_LABEL)
    if token.target is None or not is_query:
        return text
    return f"{text} → {cut_text(token.target.removeprefix(SPACE_MARK) or SPACE_MARK, _MAX_LABEL)}"
