"""Colors of lines, points and heat maps, for the light and the dark theme.

Neighbors differ in lightness as well as in hue, so that color-blind readers and prints can tell
them apart. A test checks the contrasts: lines 3:1 against the page, text 4.5:1 on every shade of a
heat map (WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

import math

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
"""(light, dark); the colors repeat with another dash after the last."""

DASHES = ("", "6 3", "2 2.5", "9 3 2 3")
"""SVG dash patterns of the first, second, third and fourth round of colors."""

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
"""Shades from the lowest to the highest score; from `TURN` on, text has the background color."""
TURN = 6


def line(number: int) -> tuple[str, str, str]:
    """Light color, dark color and dash of the n-th line of a chart."""
    light, dark = LINES[number % len(LINES)]
    return light, dark, DASHES[number // len(LINES) % len(DASHES)]


def wheel(number: int, total: int) -> tuple[str, str]:
    """Light and dark color of a language: a line's, or a hue where there are more languages."""
    if total <= len(LINES):
        return LINES[number]
    hue = 360 * number / total
    # alternating lightness separates neighboring hues
    deep = number % 2
    return (
        _hex(0.44 if deep else 0.58, 0.17, hue),
        _hex(0.84 if deep else 0.70, 0.14, hue),
    )


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """A color of OKLCH in hexadecimal sRGB, which every program that reads SVG knows.

    Colors outside of sRGB are cut at its edges.
    """
    a, b = (chroma * f(math.radians(hue)) for f in (math.cos, math.sin))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(channel)):02x}" for channel in linear)


def _gamma(channel: float) -> float:
    """A linear channel, cut to 0 to 1, as sRGB encodes it."""
    channel = min(max(channel, 0.0), 1.0)
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055
