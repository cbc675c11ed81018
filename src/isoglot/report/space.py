"""A model's sentences in two dimensions, coloured by language (MLM-GC's Figure 2), as SVG.

A language is one path of many dots: a tenth of the size of as many circles.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from isoglot.report.colours import wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.exhibits import Space

_SIZE = 1000
_MARGIN = 20
_MOST = 6000
"""Dots of a map: more are not told apart, and weigh."""


def space_svg(space: Space, numbers: Mapping[str, int]) -> str:
    """The map; `numbers` gives each language the same colour on every map of a page."""
    places = [point for points in space.points.values() for point in points]
    xs, ys = [x for x, _ in places], [y for _, y in places]
    extent = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    # one scale for both axes: distances are what the map is about
    scale = (_SIZE - 2 * _MARGIN) / extent
    left = _SIZE / 2 - scale * (max(xs) + min(xs)) / 2
    top = _SIZE / 2 - scale * (max(ys) + min(ys)) / 2
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
        f'stroke-width="9" stroke-linecap="round"><title>Sentences of {len(space.points)} '
        "languages</title>"
    )
    parts = [opening]
    every = -(-len(places) // _MOST)
    for language, points in space.points.items():
        number = numbers[language]
        dots = "".join(
            f"M{left + scale * x:.0f} {top + scale * y:.0f}h0" for x, y in points[::every]
        )
        parts.append(
            f'<path class="l{number}" d="{dots}" stroke="{wheel(number, len(numbers))[0]}">'
            f"<title>{escape(language)}</title></path>"
        )
    return "".join([*parts, "</svg>"])
