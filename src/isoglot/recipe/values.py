"""Plain values of settings, strictly: nothing is turned into what it is not."""

from __future__ import annotations

import types
import typing
from typing import Any

from isoglot.errors import nearest
from isoglot.recipe.faults import SettingError

_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def exactly(value: Any, kind: type) -> Any:
    """A value of one scalar kind; a whole number may stand for a number."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise SettingError(f"expected {_NAMES[kind]}, got {value!r}")
    return value


def is_literal(kind: Any) -> bool:
    """Is it a choice between given values?"""
    return typing.get_origin(kind) is typing.Literal


def literal(value: Any, kind: Any) -> Any:
    """One of the given values."""
    known = typing.get_args(kind)
    if value not in known:
        raise SettingError(f"{value!r} is not possible; {nearest(str(value), map(str, known))}")
    return value


def is_scalar_union(kind: Any) -> bool:
    """Is it a choice between kinds of plain values, such as a number or none?"""
    return typing.get_origin(kind) in (typing.Union, types.UnionType) and all(
        option in (*_NAMES, type(None)) or is_literal(option) for option in typing.get_args(kind)
    )


def scalar_union(value: Any, kind: Any) -> Any:
    """A value of the first kind of a union that takes it."""
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    if value is None and len(options) < len(typing.get_args(kind)):
        return None
    fault: SettingError | None = None
    for option in options:
        try:
            return literal(value, option) if is_literal(option) else exactly(value, option)
        except SettingError as error:
            fault = error
    assert fault is not None, "a union has options"
    raise fault
