"""Colours of lines, points and heat maps, for the light and the dark theme.

Neighbours differ in lightness as well as in hue, so that colour-blind readers and prints can tell
them apart. A test checks the contrasts: lines 3:1 against the page, text 4.5:1 on every shade of a
heat map (WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

PAPER = ("#ffffff", "#15181c")
"""Background of the page: light, dark."""
INK = ("#1c2126", "#e6e9ec")
"""Text: light, dark."""

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
"""(light, dark); the colours repeat with another dash after the last."""

DASHES = ("", "6 3", "2 2.5", "9 3 2 3")
"""SVG dash patterns of the first, second, third and fourth round of colours."""

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
"""Shades from the lowest to the highest score; from `TURN` on, text has the background colour."""
TURN = 6


def line(number: int) -> tuple[str, str, str]:
    """Light colour, dark colour and dash of the n-th line of a chart."""
    light, dark = LINES[number % len(LINES)]
    return light, dark, DASHES[number // len(LINES) % len(DASHES)]


def wheel(number: int, total: int) -> tuple[str, str]:
    """Light and dark colour of a language: a line's, or a hue where there are more languages."""
    if total <= len(LINES):
        return LINES[number]
    hue = 360 * number / total
    # alternating lightness separates neighbouring hues
    deep = number % 2
    return (
        f"oklch({44 if deep else 58}% .17 {hue:.0f})",
        f"oklch({84 if deep else 70}% .14 {hue:.0f})",
    )
