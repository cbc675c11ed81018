"""Where an axis has its ticks, and how numbers are written on it."""

from __future__ import annotations

import math

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


def linear_ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Round numbers inside [low, high], evenly spaced, at most `most`."""
    if high <= low:
        return [low]
    rough = (high - low) / most
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(scale * m for m in _ROUND if scale * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(low: float, high: float, *, most: int = 8) -> list[float]:
    """1, 2 and 5 of every decade inside [low, high], or whole decades where those are too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(fine) < 3:  # less than a decade: even steps read better than one lone tick
        return [tick for tick in linear_ticks(low, high) if tick > 0]
    if len(fine) <= most:
        return fine
    whole = [10.0**k for k in decades if low <= 10.0**k <= high]
    return whole[:: math.ceil(len(whole) / most)]


def written(value: float) -> str:
    """A number on an axis: 0.25, 40, 12k, 3.5M."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{value:.5g}"
