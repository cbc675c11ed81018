"""Ranges of numeric settings: `rows: Annotated[int, Range(1, 131_072)]`, checked in two places.

`recipe.structure` checks a value as it reads it, so that the error names file, line and path;
`check_ranges` checks settings that Python code makes, in their `__post_init__`. NaN and infinity
are in no range.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from typing_extensions import override

from isoglot.errors import RecipeError


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from `low` to `high`; `above` and `below` exclude the end itself."""

    low: float
    high: float
    above: bool = False
    """Whether `low` itself is out of range."""
    below: bool = False
    """Whether `high` itself is out of range."""

    def __contains__(self, value: float) -> bool:
        return (self.low < value if self.above else self.low <= value) and (
            value < self.high if self.below else value <= self.high
        )

    @override
    def __str__(self) -> str:
        low = f"above {_written(self.low)}" if self.above else f"from {_written(self.low)}"
        if self.above:
            return f"{low} and {'below' if self.below else 'at most'} {_written(self.high)}"
        return f"{low} to {'below ' if self.below else ''}{_written(self.high)}"


Probability = Annotated[float, Range(0, 1)]
"""A share or probability, 0 and 1 included."""
Seed = Annotated[int, Range(0, 2**63 - 1)]
"""A random seed that torch and NumPy take."""
NumSteps = Annotated[int, Range(1, 10**9)]
"""A number of optimizer steps."""
NumTokens = Annotated[int, Range(1, 2**24)]
"""A number of tokens of one text."""
AdamBeta = Annotated[float, Range(0, 1, below=True)]
"""A decay rate of one of Adam's moments."""
Temperature = Annotated[float, Range(1e-6, 1e6)]
"""What logits are divided by."""


def out_of_range(value: Any, kind: Any) -> str | None:
    """The end of a sentence about a number that its type excludes; none: the value is possible."""
    if isinstance(value, tuple):
        kinds = typing.get_args(kind)
        if not kinds:
            return None
        inner = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
        faults = (out_of_range(one, of) for one, of in zip(value, inner, strict=False))
        return next((fault for fault in faults if fault), None)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    for known in getattr(kind, "__metadata__", ()):
        if isinstance(known, Range) and value not in known:
            return f"must be {known}, not {_written(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, not {value}"
    return None


def check_ranges(settings: Any) -> None:
    """Raise for the first number of a settings object that is out of its range."""
    settings_class: Any = type(settings)
    for name, kind in types_of(settings_class).items():
        fault = out_of_range(getattr(settings, name), kind)
        if fault:
            raise RecipeError(f"{name} {fault}")


def check_choices(settings: Any) -> None:
    """Raise for the first setting that has none of the values that its `Literal` names."""
    settings_class: Any = type(settings)
    for name, kind in types_of(settings_class).items():
        choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
        value = getattr(settings, name)
        if choices and value not in choices:
            raise RecipeError(f"{name} must be one of {', '.join(map(str, choices))}, not {value}")


@cache
def types_of(settings: type) -> dict[str, Any]:
    """Name -> type of each field of a settings class, ranges included."""
    hints = typing.get_type_hints(settings, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def _written(number: float) -> str:
    """A number for a message: whole ones with commas, huge ones as a power of ten."""
    if isinstance(number, float) and not (number.is_integer() and abs(number) < 1e16):
        return f"{number:g}"
    digits = int(int(number).bit_length() * math.log10(2))
    return f"{int(number):,}" if digits < 17 else f"{'-' if number < 0 else ''}10^{digits}"
