"""Colours of lines, points and heat, for light and for dark pages.

Neighbours differ in lightness as well as in hue, so that they stay apart for colour-blind eyes and
on paper. A test holds the contrasts: lines 3:1 against the page, text 4.5:1 on every shade of heat
(WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

PAPER = ("#ffffff", "#15181c")
"""The page itself: light, dark."""
INK = ("#1c2126", "#e6e9ec")
"""Text on it."""

LINES = (
    ("#0b62ab", "#6cb6ff"),
    ("#c2410c", "#ff9a5c"),
    ("#047857", "#3ecf9a"),
    ("#86198f", "#e69af0"),
    ("#8a6400", "#e8c547"),
    ("#4338ca", "#a9a5ff"),
    ("#be123c", "#ff8fa6"),
    ("#0e7490", "#4fd0e0"),
    ("#5b6470", "#b4bcc6"),
    ("#4d7c0f", "#a6d83b"),
)
"""(on a light page, on a dark page); after the last the first comes again with another dash."""

DASHES = ("", "6 3", "2 2.5", "9 3 2 3")
"""Dashes of the first, second, third and fourth round of colours."""

HEAT = (
    ("#f6f9fc", "#1b2027"),
    ("#e3edf7", "#1c2a3a"),
    ("#cfe1f2", "#1d354d"),
    ("#b8d3ec", "#1e4061"),
    ("#9dc3e4", "#204c76"),
    ("#7fb1da", "#22588b"),
    ("#2f76b8", "#7fb1da"),
    ("#1f639f", "#9dc3e4"),
    ("#134f85", "#b8d3ec"),
    ("#083c6a", "#d6e6f5"),
)
"""Shades from the lowest to the highest score. From `TURN` on the text is the paper's colour."""
TURN = 6


def line(number: int) -> tuple[str, str, str]:
    """Light colour, dark colour and dash of the n-th line of a chart."""
    light, dark = LINES[number % len(LINES)]
    return light, dark, DASHES[number // len(LINES) % len(DASHES)]


def wheel(number: int, total: int) -> tuple[str, str]:
    """Light and dark colour of one of many languages: the lines' while they last, then a wheel."""
    if total <= len(LINES):
        return LINES[number]
    hue = 360 * number / total
    # every second one is deeper, so that neighbours on the wheel can be told apart
    deep = number % 2
    return (
        f"oklch({44 if deep else 58}% .17 {hue:.0f})",
        f"oklch({84 if deep else 70}% .14 {hue:.0f})",
    )
