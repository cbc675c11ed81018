"""Recipe files: YAML documents that know the line of each value, extend one another, take --set.

The only place that reads and writes YAML. A value is known by its path, (`stages`, 0, `steps`);
`Document.where` gives the file and line it came from, also after merging.

PyYAML implements YAML 1.1, in which 1e-4 is text, `no` is false and 2024-01-01 is a date. `Loader`
and `Dumper` follow YAML 1.2 in these: `no` is Norwegian. What one writes, the other reads back.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from isoglot.errors import RecipeError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAG = "tag:yaml.org,2002:"
_REPLACED = {f"{_TAG}bool", f"{_TAG}timestamp", f"{_TAG}float"}
_FLOAT = re.compile(
    r"^([-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN))$"
)
_BOOL = re.compile(r"^(true|True|TRUE|false|False|FALSE)$")


class Loader(yaml.SafeLoader):
    """Reads plain data only, no objects."""


class Dumper(yaml.SafeDumper):
    """Writes plain data; quotes what the loader would take for something else."""


def _speak_1_2(kind: Any) -> None:
    kind.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    kind.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
    kind.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("tTfF"))


_speak_1_2(Loader)
_speak_1_2(Dumper)


Key = tuple[str | int, ...]

BUILT_IN = Path(__file__).parent.parent / "recipes"
_SUFFIXES = (".yaml", ".yml")


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
    """The file of a recipe: a name that ends in .yaml is a path, any other is a built-in recipe.

    Paths are relative to `folder`, or to where the command runs.
    """
    if Path(name).suffix in _SUFFIXES:
        path = (folder or Path()) / name
        if not path.is_file():
            raise RecipeError(f"there is no file {path}: give a path to a recipe or its name.")
        return path
    path = BUILT_IN / f"{name}.yaml"
    if name not in built_in():
        raise RecipeError(
            f"there is no recipe {name!r}; {nearest(name, built_in())} "
            f"(A file of your own is named with its .yaml.)"
        )
    return path


def built_in() -> list[str]:
    """Names of the built-in recipes; those in folders come last, named with the folder."""
    names = [
        path.relative_to(BUILT_IN).with_suffix("").as_posix() for path in BUILT_IN.rglob("*.yaml")
    ]
    return sorted(names, key=lambda name: ("/" in name, name))


def read(path: Path) -> Document:
    """Read a document and everything it extends."""
    return _read(path, ())


def write(data: Any, *, one_line: bool = False) -> str:
    """Plain data as YAML that `read` gives back."""
    text: str = yaml.dump(
        data,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=one_line,
        width=sys.maxsize if one_line else 100,
    )
    return text


def merged(base: Document, change: Document) -> Document:
    """A document changed by another: mappings are joined, everything else is replaced."""
    places = dict(base.places)
    data = _merge(base.data, change.data, (), places)
    return Document(data=data, places=places | change.places)


def with_settings(document: Document, settings: Sequence[str]) -> Document:
    """A document changed by `a.b=value` settings from the command line."""
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise RecipeError(f"--set {setting}: write it as path.to.setting=value.")
        keys: Key = tuple(int(key) if key.isdigit() else key for key in path.split("."))
        try:
            value = yaml.load(text, Loader=Loader)  # noqa: S506 (a safe loader)
        except yaml.YAMLError as error:
            raise RecipeError(
                f"--set {setting}: the value is not YAML; {_reason(error)}."
            ) from None
        places = {k: v for k, v in document.places.items() if k[: len(keys)] != keys}
        for end in range(1, len(keys) + 1):
            places.setdefault(keys[:end], "--set")
        document = Document(data=_set(document.data, keys, value, setting), places=places)
    return document


def _read(path: Path, extended: tuple[Path, ...]) -> Document:
    if path.resolve() in extended:
        raise RecipeError(f"{path} extends itself, directly or through the recipes it extends.")
    document = _parse(path)
    base = document.data.pop("extends", None)
    if base is None:
        return document
    place = document.places[("extends",)]
    if not isinstance(base, str):
        raise RecipeError(f"{place}: extends must name one recipe or file.")
    try:
        found = find(base, path.parent)
    except RecipeError as error:
        raise RecipeError(f"{place}: extends: {error}") from None
    return merged(_read(found, (*extended, path.resolve())), document)


def _parse(path: Path) -> Document:
    places: dict[Key, str] = {}
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=Loader)
        data = _plain(node, (), path, places) if node is not None else {}
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path} cannot be read: it is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark is not None else path
        raise RecipeError(f"{place}: this is not YAML; {_reason(error)}.") from error
    if not isinstance(data, dict):
        raise RecipeError(f"{path} must hold settings (key: value), not {data!r:.40}.")
    return Document(data=data, places={(): f"{path}:1", **places})


def _plain(node: yaml.Node, path: Key, file: Path, places: dict[Key, str]) -> Any:
    """Plain data from a YAML node, noting the line of each value."""
    places[path] = f"{file}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, place = str(key_node.value), f"{file}:{key_node.start_mark.line + 1}"
            if key in data:
                raise RecipeError(f"{place}: {key!r} is given twice.")
            data[key] = _plain(value_node, (*path, key), file, places)
            places[(*path, key)] = place
        return data
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, i), file, places) for i, item in enumerate(node.value)]
    return Loader("").construct_object(node)


def _merge(base: Any, change: Any, path: Key, places: dict[Key, str]) -> Any:
    if not (isinstance(base, dict) and isinstance(change, dict)):
        for key in [key for key in places if key[: len(path)] == path and len(key) > len(path)]:
            del places[key]
        return change
    joined = dict(base)
    for key, value in change.items():
        joined[key] = _merge(base[key], value, (*path, key), places) if key in base else value
    return joined


def _set(data: Any, keys: Key, value: Any, setting: str) -> Any:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(data, list):
        if not isinstance(key, int) or key >= len(data):
            raise RecipeError(
                f"--set {setting}: {str(key)!r} must be a place in a list of {len(data)}: "
                f"a number from 0 to {len(data) - 1}."
            )
        return [_set(v, rest, value, setting) if i == key else v for i, v in enumerate(data)]
    if data is not None and not isinstance(data, dict):
        raise RecipeError(f"--set {setting}: {str(key)!r} lies below a plain value ({data!r}).")
    inner = dict(data or {})
    inner[str(key)] = _set(inner.get(str(key)), rest, value, setting)
    return inner


def _reason(error: yaml.YAMLError) -> str:
    """What the parser did not like, without its quotation of the text."""
    return getattr(error, "problem", None) or "it has characters that YAML does not allow"
