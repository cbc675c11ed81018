"""Contrasts of the two themes (WCAG 2.2)."""

from __future__ import annotations

import pytest

from isoglot.report.colors import HEAT, INK, LINES, PAPER, TURN


def luminance(color: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(color[n : n + 2], 16) / 255) for n in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_is_readable_on_every_shade_and_lines_are_seen(theme):
    assert contrast(INK[theme], PAPER[theme]) >= 7
    for number, shade in enumerate(HEAT):
        text = PAPER[theme] if number >= TURN else INK[theme]
        assert contrast(text, shade[theme]) >= 4.5, (number, shade)
    for line in LINES:
        assert contrast(line[theme], PAPER[theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1])
def test_shades_are_in_order_of_lightness(theme):
    shades = [luminance(shade[theme]) for shade in HEAT]
    assert shades == sorted(shades, reverse=theme == 0)
