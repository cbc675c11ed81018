"""Plain data to frozen settings, by cattrs, strictly; all faults are reported at once.

Strict: "0.2" is not a number, a string is not a list, and an unknown key is a fault with the
nearest known name. Every fault is reported with its file, line and path.

Settings whose class depends on their key (objectives, streams) choose it themselves: their base
class has a class method `class_for(key, settings)`. This module imports neither.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import cattrs
from cattrs.gen import make_dict_structure_fn, override

from isoglot.errors import IsoglotError, RecipeError, nearest
from isoglot.ranges import out_of_range, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.recipe.document import Document
    from isoglot.yaml_text import Key

T = TypeVar("T")
Read = Callable[[Any, Any], Any]


def structure(document: Document, kind: type[T]) -> T:
    """Settings of a kind from a document.

    Raises:
        RecipeError: lists every fault with its place and path.
    """
    try:
        return _converter().structure(document.data, kind)
    except (cattrs.BaseValidationError, SettingError) as error:
        raise listed(error, document) from None


def plain(settings: Any) -> Any:
    """Plain data from settings: what `structure` would read again."""
    if dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        return {f.name: plain(getattr(settings, f.name)) for f in dataclasses.fields(settings)}
    if isinstance(settings, dict):
        return {key: _with_kind(key, value) for key, value in settings.items()}
    if isinstance(settings, tuple | list):
        return [plain(value) for value in settings]
    return settings


def _with_kind(key: str, value: Any) -> Any:
    """An entry of a mapping; a stream whose key is not its kind says its kind."""
    if getattr(value, "kind", key) != key:
        return {"kind": value.kind, **plain(value)}
    return plain(value)


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, exactly)
    converter.register_structure_hook_func(is_literal, literal)
    converter.register_structure_hook_func(is_scalar_union, scalar_union)
    converter.register_structure_hook_factory(
        lambda kind: _origin(kind) is Annotated, lambda kind: _in_range(kind, converter)
    )
    converter.register_structure_hook_factory(
        lambda kind: _origin(kind) is tuple, lambda kind: _tuple(kind, converter)
    )
    converter.register_structure_hook_factory(
        lambda kind: _origin(kind) is dict, lambda kind: _mapping(kind, converter)
    )
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass, lambda kind: _settings(kind, converter)
    )
    return converter


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


def _in_range(kind: Any, converter: cattrs.Converter) -> Read:
    """A value of a type with a range: `Annotated[int, Range(1, 8)]`."""

    def read(value: Any, _: Any) -> Any:
        found = converter.structure(value, kind.__origin__)
        fault = out_of_range(found, kind)
        if fault:
            raise SettingError(fault)
        return found

    return read


def _tuple(kind: Any, converter: cattrs.Converter) -> Read:
    inner = typing.get_args(kind)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise SettingError(f"expected a list, got {_shortened(value)}")
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise SettingError(f"expected {len(inner)} values, got {len(value)}")
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        found = _each(enumerate(value), lambda i, v: converter.structure(v, kinds[i]))
        return tuple(found.values())

    return read


def _mapping(kind: Any, converter: cattrs.Converter) -> Read:
    """A mapping from names to settings; `class_for` chooses their class by name."""
    _, inner = typing.get_args(kind)
    choose = getattr(inner, "class_for", None)

    def one(key: Any, value: Any) -> Any:
        if choose is None:
            return converter.structure(value, inner)
        value = {} if value is None else dict(value) if isinstance(value, dict) else value
        return converter.structure(value, choose(key, value))

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise SettingError(f"expected names with values (name: value), got {_shortened(value)}")
        return _each(value.items(), one)

    return read


def _settings(kind: Any, converter: cattrs.Converter) -> Read:
    """A dataclass of settings; a stream checks that its objectives exist and can read it."""
    # cattrs resolves the types of a dataclass without what Annotated adds to them
    special: dict[str, Any] = {
        name: override(struct_hook=_as(converter, of))
        for name, of in types_of(kind).items()
        if _origin(of) in (Annotated, tuple)
    }
    if hasattr(kind, "check_objective"):
        names = override(struct_hook=_objective_names(kind, converter))
        special |= {"objectives": names, "must_fit": names}
    fill = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **special)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise SettingError(f"expected settings (key: value), got {_shortened(value)}")
        return fill(value, kind)

    return read


def _as(converter: cattrs.Converter, kind: Any) -> Read:
    return lambda value, _: converter.structure(value, kind)


def _objective_names(stream: Any, converter: cattrs.Converter) -> Read:
    def one(_: int, name: str) -> str:
        stream.check_objective(name)
        return name

    def read(value: Any, _: Any) -> tuple[str, ...]:
        names = converter.structure(value, tuple[str, ...])
        return tuple(_each(enumerate(names), one).values())

    return read


def _each(items: Iterable[tuple[Any, Any]], read: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    """Read every item, collecting all faults as cattrs does."""
    found, errors = {}, []
    for key, value in items:
        try:
            found[key] = read(key, value)
        except (cattrs.BaseValidationError, ValueError) as error:
            note = cattrs.IterableValidationNote(f"at {key}", key, Any)
            error.__notes__ = [*getattr(error, "__notes__", []), note]
            errors.append(error)
    if errors:
        raise cattrs.IterableValidationError("faults", errors, dict)
    return found


_MAX_INT = 10**300
"""Whole numbers beyond this are infinite as floats."""
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def exactly(value: Any, kind: type) -> Any:
    """A value of one scalar kind; a whole number may stand for a number."""
    if kind is float and type(value) is int:
        return float(value) if abs(value) < _MAX_INT else math.inf
    if type(value) is not kind:
        raise SettingError(f"expected {_NAMES[kind]}, got {_shortened(value)}")
    return value


def _shortened(value: Any) -> str:
    """A value as Python writes it, at most 80 characters of it."""
    if isinstance(value, int) and value.bit_length() > 200:  # repr refuses thousands of digits
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


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
    faults: list[SettingError] = []
    for option in options:
        try:
            return literal(value, option) if is_literal(option) else exactly(value, option)
        except SettingError as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if isinstance(value, str) and any(map(is_literal, options)):  # its nearest name is told
        raise next(one for one, of in zip(faults, options, strict=True) if is_literal(of))
    names = [
        " or ".join(map(str, typing.get_args(option))) if is_literal(option) else _NAMES[option]
        for option in options
    ]
    raise SettingError(f"expected {' or '.join(names)}, got {_shortened(value)}")


class SettingError(ValueError):
    """One fault of one setting, in words for the user."""


def listed(error: Exception, document: Document) -> RecipeError:
    """One error that names all faults inside a (group of) errors.

    Raises:
        Exception: an error that is no fault of the document comes out as it is.
    """
    found = [(document.where(path), path, text) for path, text in _inside(error, ())]
    found.sort(key=lambda fault: _file_and_line(fault[0]))
    # a fault of settings that do not go together is that of the whole, which has no path
    lines = [
        ": ".join(filter(None, [place, ".".join(map(str, path)), text]))
        for place, path, text in found
    ]
    number = f"{len(lines)} errors" if len(lines) > 1 else "an error"
    return RecipeError(f"{number} in the settings:\n  " + "\n  ".join(lines))


def _file_and_line(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return (file, int(line)) if line.isdigit() else (place, 0)


def _inside(error: BaseException, path: Key) -> list[tuple[Key, str]]:
    """All faults inside a group of errors, each with its path."""
    if isinstance(error, cattrs.ClassValidationError | cattrs.IterableValidationError):
        noted, others = error.group_exceptions()
        found = []
        for inner, note in noted:
            key = note.name if isinstance(note, cattrs.AttributeValidationNote) else note.index
            found += _inside(inner, (*path, key))
        for inner in others:
            found += _inside(inner, path)
        return found
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [field.name for field in dataclasses.fields(typing.cast("Any", error.cl))]
        return [
            ((*path, key), f"unknown setting; {nearest(key, known)}")
            for key in sorted(error.extra_fields)
        ]
    if isinstance(error, KeyError):
        return [(path, "this setting is needed and has no default")]
    if isinstance(error, IsoglotError | SettingError):
        return [(path, str(error))]
    raise error
