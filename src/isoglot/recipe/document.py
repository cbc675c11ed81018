"""YAML documents that remember where each value stands, can extend one another, and take --set.

The only place that reads YAML. A value is known by its path, (`stages`, 0, `steps`); `where` tells
the file and line it came from, also after merging.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from isoglot.errors import RecipeError, nearest

Key = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads 1e-4 as text; people mean the number, as YAML 1.2 does."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$"),
    list("-+.0123456789"),
)
BUILT_IN = Path(__file__).parent.parent / "recipes"


@dataclass(slots=True, kw_only=True)
class Document:
    """Plain data, and the place of each of its values."""

    data: dict[str, Any]
    places: dict[Key, str] = field(default_factory=dict)

    def where(self, path: Key) -> str:
        """The place of a value, or of the nearest thing around it that has one."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, "")


def find(name: str, folder: Path | None = None) -> Path:
    """The file of a recipe: a path, or the name of a built-in one."""
    for path in (Path(name), (folder or Path()) / name, (folder or Path()) / f"{name}.yaml"):
        if path.suffix in (".yaml", ".yml") and path.is_file():
            return path
    if (BUILT_IN / f"{name}.yaml").is_file():
        return BUILT_IN / f"{name}.yaml"
    if Path(name).suffix in (".yaml", ".yml"):
        raise RecipeError(f"there is no file {name}: give a path to a recipe, or a built-in name.")
    raise RecipeError(f"there is no recipe {name!r}: {nearest(name, built_in())}")


def built_in() -> list[str]:
    """Names of the built-in recipes; those in folders are named with the folder."""
    return sorted(
        path.relative_to(BUILT_IN).with_suffix("").as_posix() for path in BUILT_IN.rglob("*.yaml")
    )


def read(path: Path) -> Document:
    """Read a document and everything it extends."""
    return _read(path, ())


def _read(path: Path, extended: tuple[Path, ...]) -> Document:
    if path.resolve() in extended:
        raise RecipeError(f"{path} extends itself.")
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not YAML: {error}") from error
    places: dict[Key, str] = {}
    data = _plain(node, (), path, places) if node is not None else {}
    if not isinstance(data, dict):
        raise RecipeError(f"{path} must hold settings (key: value), not a {type(data).__name__}.")
    document = Document(data=data, places=places)
    base = data.pop("extends", None)
    if base is None:
        return document
    if not isinstance(base, str):
        raise RecipeError(f"{places[('extends',)]}: extends must name one recipe or file.")
    return merged(_read(find(base, path.parent), (*extended, path.resolve())), document)


def merged(base: Document, change: Document) -> Document:
    """A document changed by another: mappings are joined, everything else is replaced."""
    places = dict(base.places)
    data = _merge(base.data, change.data, (), places)
    return Document(data=data, places=places | change.places)


def with_settings(document: Document, settings: list[str] | tuple[str, ...]) -> Document:
    """A document changed by `a.b=value` settings from the command line."""
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise RecipeError(f"--set {setting}: write it as path.to.setting=value.")
        keys: Key = tuple(int(key) if key.isdigit() else key for key in path.split("."))
        try:
            value = yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)
        except yaml.YAMLError as error:
            raise RecipeError(f"--set {setting}: the value is not YAML: {error}") from error
        document = Document(
            data=_set(document.data, keys, value, setting),
            places={k: v for k, v in document.places.items() if k[: len(keys)] != keys}
            | {keys: f"--set {path}"},
        )
    return document


def _set(data: Any, keys: Key, value: Any, setting: str) -> Any:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(data, list):
        if not isinstance(key, int) or key >= len(data):
            raise RecipeError(
                f"--set {setting}: {key!r} must be a number below {len(data)}, the place in a list."
            )
        return [_set(v, rest, value, setting) if i == key else v for i, v in enumerate(data)]
    if data is not None and not isinstance(data, dict):
        raise RecipeError(f"--set {setting}: {key!r} lies below a plain value ({data!r}).")
    inner = dict(data or {})
    inner[str(key)] = _set(inner.get(str(key)), rest, value, setting)
    return inner


def _merge(base: Any, change: Any, path: Key, places: dict[Key, str]) -> Any:
    if not (isinstance(base, dict) and isinstance(change, dict)):
        for key in [key for key in places if key[: len(path)] == path and len(key) > len(path)]:
            del places[key]
        return change
    joined = dict(base)
    for key, value in change.items():
        joined[key] = _merge(base[key], value, (*path, key), places) if key in base else value
    return joined


def _plain(node: yaml.Node, path: Key, file: Path, places: dict[Key, str]) -> Any:
    """Plain data from a YAML node, noting the line of each value."""
    places[path] = f"{file}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in data:
                raise RecipeError(f"{file}:{key_node.start_mark.line + 1}: {key!r} is there twice.")
            data[key] = _plain(value_node, (*path, key), file, places)
            places[(*path, key)] = f"{file}:{key_node.start_mark.line + 1}"
        return data
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, i), file, places) for i, item in enumerate(node.value)]
    loader = _Loader("")
    return loader.construct_object(node)  # type: ignore[no-untyped-call]
