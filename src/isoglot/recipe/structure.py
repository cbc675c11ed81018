"""Plain data to frozen settings, by cattrs, strictly: every fault at once, with its path.

Strict means that nothing is guessed: "0.2" is not a number, a string is not a list, unknown keys
are faults (with the nearest known name).
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import cattrs
from cattrs.gen import make_dict_structure_fn, override

from isoglot.batching.streams import STREAMS, StreamConfig
from isoglot.errors import nearest
from isoglot.objectives import Objective, find_objective
from isoglot.recipe.faults import SettingError, listed
from isoglot.recipe.values import exactly, is_literal, is_scalar_union, literal, scalar_union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.recipe.document import Document

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
    """An entry of a mapping; a stream that its key does not name says its kind."""
    if isinstance(value, StreamConfig) and value.kind != key:
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


def _tuple(kind: Any, converter: cattrs.Converter) -> Read:
    inner = typing.get_args(kind)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise SettingError(f"expected a list, got {value!r}")
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise SettingError(f"expected {len(inner)} values, got {len(value)}")
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        found = _each(enumerate(value), lambda i, v: converter.structure(v, kinds[i]))
        return tuple(found.values())

    return read


def _mapping(kind: Any, converter: cattrs.Converter) -> Read:
    """A mapping from names; the class of objectives and streams depends on the name."""
    _, inner = typing.get_args(kind)
    choose = {Objective: _objective_class, StreamConfig: _stream_class}.get(inner)

    def one(key: Any, value: Any) -> Any:
        if choose is None:
            return converter.structure(value, inner)
        value = {} if value is None else dict(value) if isinstance(value, dict) else value
        return converter.structure(value, choose(key, value))

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise SettingError(f"expected names with values (name: value), got {value!r}")
        return _each(value.items(), one)

    return read


def _settings(kind: Any, converter: cattrs.Converter) -> Read:
    """A dataclass of settings; a stream's objectives must exist and be able to read it."""
    special: dict[str, Any] = {}
    if issubclass(kind, StreamConfig):
        special["objectives"] = override(struct_hook=_objective_names(kind, converter))
    fill = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **special)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise SettingError(f"expected settings (key: value), got {value!r}")
        return fill(value, kind)

    return read


def _objective_names(stream: type[StreamConfig], converter: cattrs.Converter) -> Read:
    def one(_: int, name: str) -> str:
        reads = find_objective(name).reads
        if stream.kind not in reads:
            raise SettingError(
                f"the objective {name!r} reads {' or '.join(reads)}, not {stream.kind}"
            )
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


def _objective_class(name: str, _: Any) -> type[Objective]:
    return find_objective(name)


def _stream_class(name: str, settings: Any) -> type[StreamConfig]:
    """A stream's class is named by its key, or by `kind` where there are two of one kind."""
    kind = settings.pop("kind", name) if isinstance(settings, dict) else name
    for stream in STREAMS:
        if stream.kind == kind:
            return stream
    raise SettingError(
        f"there is no stream {kind!r}; {nearest(str(kind), [s.kind for s in STREAMS])}"
    )
