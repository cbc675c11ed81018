"""Plain data to frozen settings, by cattrs, strictly: every fault at once, with its path.

Strict means that nothing is guessed: "0.2" is not a number, a string is not a list, unknown keys
are faults (with the nearest known name).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import TYPE_CHECKING, Any, TypeVar

import cattrs
from cattrs.gen import make_dict_structure_fn

from isoglot.batching.streams import STREAMS, StreamConfig
from isoglot.errors import IsoglotError, RecipeError, nearest
from isoglot.objectives import Objective, find_objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.recipe.document import Document, Key

T = TypeVar("T")


class _Fault(ValueError):
    """One fault, in words for the user."""


def structure(document: Document, kind: type[T]) -> T:
    """Settings of a kind from a document.

    Raises:
        RecipeError: lists every fault with its place and path.
    """
    try:
        return _converter().structure(document.data, kind)
    except Exception as error:
        faults = _faults(error, ())
        lines = [f"{document.where(path)}: {_dotted(path)}: {text}" for path, text in faults]
        number = f"{len(lines)} faults" if len(lines) > 1 else "a fault"
        raise RecipeError(f"{number} in the settings:\n  " + "\n  ".join(lines)) from None


def plain(settings: Any) -> Any:
    """Plain data from settings: what `structure` would read again."""
    if dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        return {f.name: plain(getattr(settings, f.name)) for f in dataclasses.fields(settings)}
    if isinstance(settings, dict):
        return {key: plain(value) for key, value in settings.items()}
    if isinstance(settings, tuple | list):
        return [plain(value) for value in settings]
    return settings


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, _exactly)
    converter.register_structure_hook_func(_is_literal, _literal)
    converter.register_structure_hook_func(
        _is_scalar_union, lambda value, kind: _scalar_union(value, kind)
    )
    converter.register_structure_hook_factory(
        lambda kind: typing.get_origin(kind) is tuple, lambda kind: _tuple(kind, converter)
    )
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass,
        lambda kind: _mapping_only(
            make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True), kind
        ),
    )
    converter.register_structure_hook_func(
        lambda kind: kind == dict[str, Objective],
        lambda value, _: _by_key(value, converter, _objective_class),
    )
    converter.register_structure_hook_func(
        lambda kind: kind == dict[str, StreamConfig],
        lambda value, _: _by_key(value, converter, _stream_class),
    )
    return converter


def _exactly(value: Any, kind: type) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise _Fault(f"expected {_name(kind)}, got {value!r}")
    return value


def _is_literal(kind: Any) -> bool:
    return typing.get_origin(kind) is typing.Literal


def _literal(value: Any, kind: Any) -> Any:
    known = typing.get_args(kind)
    if value not in known:
        names = [str(name) for name in known]
        raise _Fault(f"expected one of {', '.join(names)}, got {value!r}; {nearest(str(value), names)}")
    return value


def _is_scalar_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType) and all(
        option in (int, float, str, bool, type(None)) or _is_literal(option)
        for option in typing.get_args(kind)
    )


def _scalar_union(value: Any, kind: Any) -> Any:
    options = typing.get_args(kind)
    if value is None and type(None) in options:
        return None
    rest = [option for option in options if option is not type(None)]
    for number, option in enumerate(rest):
        try:
            return _literal(value, option) if _is_literal(option) else _exactly(value, option)
        except _Fault:
            if number == len(rest) - 1:
                raise
    raise AssertionError("a union has options")


def _tuple(kind: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner = typing.get_args(kind)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _Fault(f"expected a list, got {value!r}")
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise _Fault(f"expected {len(inner)} values, got {len(value)}")
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_each(enumerate(value), lambda i, v: converter.structure(v, kinds[i])).values())

    return read


def _mapping_only(
    read: Callable[[Any, Any], Any], kind: Any
) -> Callable[[Any, Any], Any]:
    def checked(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _Fault(f"expected settings (key: value), got {value!r}")
        return read(value, kind)

    return checked


def _by_key(
    value: Any, converter: cattrs.Converter, choose: Callable[[str, dict[str, Any]], type]
) -> dict[str, Any]:
    """A mapping whose values' class depends on their key."""
    if not isinstance(value, dict):
        raise _Fault(f"expected names with settings, got {value!r}")

    def one(key: Any, inner: Any) -> Any:
        inner = dict(inner) if isinstance(inner, dict) else inner if inner is not None else {}
        return converter.structure(inner, choose(key, inner))

    return _each(value.items(), one)


def _each(items: Any, read: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    """Read every item, collecting all faults as cattrs does."""
    found, errors = {}, []
    for key, value in items:
        try:
            found[key] = read(key, value)
        except Exception as error:  # noqa: BLE001, PERF203
            note = cattrs.IterableValidationNote(f"at {key}", key, Any)
            error.__notes__ = [*getattr(error, "__notes__", []), note]
            errors.append(error)
    if errors:
        raise cattrs.IterableValidationError("faults", errors, dict)
    return found


def _objective_class(name: str, _: dict[str, Any]) -> type[Objective]:
    return find_objective(name)


def _stream_class(name: str, settings: dict[str, Any]) -> type[StreamConfig]:
    """A stream's class is named by its key, or by `kind` where there are two of one kind."""
    kind = settings.pop("kind", name) if isinstance(settings, dict) else name
    for stream in STREAMS:
        if stream.kind == kind:
            return stream
    raise _Fault(f"there is no stream {kind!r}: {nearest(kind, [s.kind for s in STREAMS])}")


def _faults(error: BaseException, path: Key) -> list[tuple[Key, str]]:
    """All faults inside a group of errors, each with its path."""
    if isinstance(error, cattrs.ClassValidationError | cattrs.IterableValidationError):
        noted, others = error.group_exceptions()
        found = []
        for inner, note in noted:
            key = note.name if isinstance(note, cattrs.AttributeValidationNote) else note.index
            found += _faults(inner, (*path, key))
        for inner in others:
            found += _faults(inner, path)
        return found
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [f.name for f in dataclasses.fields(typing.cast("Any", error.cl))]
        return [
            ((*path, key), f"unknown setting; {nearest(key, known)}")
            for key in sorted(error.extra_fields)
        ]
    if isinstance(error, KeyError):
        return [(path, "this setting is needed and has no default")]
    if isinstance(error, IsoglotError | _Fault):
        return [(path, str(error))]
    raise error


def _name(kind: type) -> str:
    return {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]


def _dotted(path: Key) -> str:
    return ".".join(str(key) for key in path)
