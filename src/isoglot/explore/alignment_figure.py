"""Drawings of linked words as SVG: words joined by lines, and the matrix of their cosines.

The two sentences stand in two columns, one word a line, so that a drawing has the same width for
any length and fits a phone. Texts are in `currentColor` and lines in the page's accent color, so
that both follow the light and the dark theme.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from isoglot.explore.markup import cut, html_text
from isoglot.explore.word_links import cosine_range, is_right_to_left, strengths

if TYPE_CHECKING:
    from isoglot.explore.word_links import LinkedPair

_WIDTH = 360
_COLUMN = 140
"""Width of a column of words."""
_LINE = 26
"""Height of a line."""
_MAX_UNITS = 17
"""Width of a word that fits its column, in Latin letters; Chinese ones count twice."""
_CELL = 18
_LABEL_UNITS = 13
"""Width of a word beside or above the matrix, at most."""
_UNIT = 7.5
"""Pixels of a Latin letter there."""
_ACCENT = "var(--primary-500, #0b7285)"
_TITLE_CHARACTERS = 80


def links_svg(pair: LinkedPair, *, label: str) -> str:
    """The words of two sentences in two columns, linked ones joined; thicker: more similar."""
    first, second = pair.words
    height = _LINE * max(len(first), len(second), 1)
    places = [
        [(number + 0.5) * height / len(side) for number in range(len(side))] for side in pair.words
    ]
    values = [pair.cosines[i][j] for i, j in pair.links]
    least, greatest = cosine_range(pair)
    lines = [
        f'<line x1="{_COLUMN + 6}" y1="{places[0][i]:.1f}" x2="{_WIDTH - _COLUMN - 6}" '
        f'y2="{places[1][j]:.1f}" stroke-width="{1 + 4 * strength:.2f}" '
        f'stroke-opacity="{0.3 + 0.7 * strength:.2f}" data-link="{i}-{j}">'
        f"<title>{_title(first[i], second[j], value)}</title></line>"
        for (i, j), value, strength in zip(pair.links, values, strengths(pair, values), strict=True)
    ]
    texts = [
        *(_word(word, _COLUMN, y, at_end=True) for word, y in zip(first, places[0], strict=True)),
        *(
            _word(word, _WIDTH - _COLUMN, y, at_end=False)
            for word, y in zip(second, places[1], strict=True)
        ),
    ]
    return (
        f'<svg class="ig-links" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'aria-label="{html_text(label)}" xmlns="http://www.w3.org/2000/svg" font-size="14" '
        f'fill="currentColor"><g stroke="{_ACCENT}" stroke-linecap="round">{"".join(lines)}</g>'
        f"{''.join(texts)}</svg>"
        f'<p class="ig-note">{len(pair.links)} links at layer {pair.layer}; cosines of words from '
        f"{least:.2f} (thin) to {greatest:.2f} (thick).</p>"
    )


def matrix_svg(pair: LinkedPair, *, label: str) -> str:
    """The cosine of every word with every word: the darker, the larger; links have a frame."""
    first, second = pair.words
    left, top = (_label_room(side) for side in pair.words)
    links = set(pair.links)
    cells = []
    for i, row in enumerate(pair.cosines):
        for j, (value, strength) in enumerate(zip(row, strengths(pair, row), strict=True)):
            frame = ' stroke="currentColor" stroke-width="1.5"' if (i, j) in links else ""
            cells.append(
                f'<rect x="{left + j * _CELL + 1}" y="{top + i * _CELL + 1}" '
                f'width="{_CELL - 2}" height="{_CELL - 2}" rx="2" '
                f'fill="{_ACCENT}" fill-opacity="{0.05 + 0.95 * strength:.2f}"{frame}>'
                f"<title>{_title(first[i], second[j], value)}</title></rect>"
            )
    rows = [
        _word(word, left - 4, top + (number + 0.5) * _CELL, at_end=True, units=_LABEL_UNITS)
        for number, word in enumerate(first)
    ]
    columns = [
        _upright(word, left + (number + 0.5) * _CELL, top - 4) for number, word in enumerate(second)
    ]
    width, height = left + _CELL * len(second) + 2, top + _CELL * len(first) + 2
    return (
        f'<div class="ig-scroll"><svg class="ig-matrix" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{html_text(label)}" '
        f'xmlns="http://www.w3.org/2000/svg" font-size="12" fill="currentColor">'
        f"{''.join(cells)}{''.join(rows)}{''.join(columns)}</svg></div>"
    )


def _label_room(words: list[str]) -> int:
    """Pixels for the words beside or above the matrix."""
    longest = max((sum(map(_units, word)) for word in words), default=0)
    return round(_UNIT * min(longest, _LABEL_UNITS + 1)) + 12


def _title(first: str, second: str, value: float) -> str:
    """What is shown while the pointer is over a link or a cell."""
    words = (html_text(word, _TITLE_CHARACTERS) for word in (first, second))
    # isolates: an Arabic word would change the order of what follows it
    named = " – ".join(
        f"\N{FIRST STRONG ISOLATE}{word}\N{POP DIRECTIONAL ISOLATE}" for word in words
    )
    return f"{named}: {'no token' if value <= -1 else f'{value:.3f}'}"


def _word(word: str, x: float, y: float, *, at_end: bool, units: int = _MAX_UNITS) -> str:
    """A word that ends, or begins, at x; the edge is the same in both directions of writing."""
    to_left = is_right_to_left(word)
    anchor = "end" if at_end != to_left else "start"
    direction = ' direction="rtl"' if to_left else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" dominant-baseline="central" text-anchor="{anchor}"'
        f"{direction}>{_shown(word, units)}</text>"
    )


def _upright(word: str, x: float, y: float) -> str:
    """A word above a column, from the bottom to the top."""
    to_left = is_right_to_left(word)
    anchor, direction = ("end", ' direction="rtl"') if to_left else ("start", "")
    return (
        f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)" dominant-baseline="central" '
        f'text-anchor="{anchor}"{direction}>{_shown(word, _LABEL_UNITS)}</text>'
    )


def _shown(word: str, units: int) -> str:
    """A word that fits, escaped; a longer one ends with an ellipsis, and its title has more."""
    used = 0.0
    for number, letter in enumerate(word):
        used += _units(letter)
        if used > units:
            title = f"<title>{html_text(cut(word, _TITLE_CHARACTERS))}</title>"
            return f"{html_text(word[: max(1, number - 1)])}…{title}"
    return html_text(word)


def _units(letter: str) -> float:
    if unicodedata.category(letter).startswith("M"):
        return 0.0
    return 1.8 if unicodedata.east_asian_width(letter) in "WF" else 1.0
