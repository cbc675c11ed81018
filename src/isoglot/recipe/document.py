"""Recipe files: YAML documents that know the line of each value, extend one another, take --set.

A value is known by its path, (`stages`, 0, `steps`); `Document.where` gives the file and line it
came from, also after merging. `isoglot.yaml_text` reads and writes the YAML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot import yaml_text
from isoglot.errors import RecipeError, nearest
from isoglot.yaml_text import Key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def built_in_base(name: str) -> str | None:
    """The built-in recipe that a built-in one extends directly."""
    path = find(name)
    base = _parse(path).data.get("extends")
    if base is None:
        return None
    return find(base, path.parent).relative_to(BUILT_IN).with_suffix("").as_posix()


def read(path: Path) -> Document:
    """Read a document and everything it extends."""
    return _read(path, ())


def merged(base: Document, change: Document) -> Document:
    """A document changed by another: mappings are joined, everything else is replaced."""
    places = dict(base.places)
    data = _merge(base.data, change.data, (), places)
    given = change.data.get("model")
    data = _with_one_source(data, given if isinstance(given, dict) else {})
    return Document(data=data, places=places | change.places)


def with_settings(document: Document, settings: Sequence[str]) -> Document:
    """A document changed by `a.b=value` settings from the command line.

    `stages.0.streams.NAME=null` takes a stream out.
    """
    of_model: dict[str, Any] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise RecipeError(f"--set {setting}: write it as path.to.setting=value.")
        keys: Key = tuple(int(key) if key.isdigit() else key for key in path.split("."))
        value, _ = yaml_text.parse(text, f"--set {setting:.80}", lines=False)
        places = {k: v for k, v in document.places.items() if k[: len(keys)] != keys}
        for end in range(1, len(keys) + 1):
            places.setdefault(keys[:end], "--set")
        data = _set(document.data, keys, value, setting)
        if value is None and _names_stream(keys, document.data):
            known = document.data["stages"][keys[1]].get("streams") or {}
            _take_out(str(keys[3]), data["stages"][keys[1]]["streams"], known, setting)
        document = Document(data=data, places=places)
        if len(keys) == 2 and keys[0] == "model":
            of_model[str(keys[1])] = value
    return Document(data=_with_one_source(document.data, of_model), places=document.places)


_SHAPE = ("size", "num_layers", "hidden_size", "num_heads")
"""Settings of a model from scratch."""


def _with_one_source(data: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A model to start from replaces an inherited shape, and a size an inherited model.

    `given` are the settings of the model that change a recipe; both among them are left, and
    refused where settings are checked.
    """
    gone: tuple[str, ...] = ()
    if given.get("init_from") is not None and given.get("size") is None:
        gone = _SHAPE
    elif given.get("size") is not None and given.get("init_from") is None:
        gone = ("init_from",)
    model = data.get("model")
    if not gone or not isinstance(model, dict):
        return data
    kept = {name: value for name, value in model.items() if name in given or name not in gone}
    return {**data, "model": kept}


def _names_stream(keys: Key, data: dict[str, Any]) -> bool:
    """Whether a path is that of a whole stream of a stage, which null takes out."""
    is_path = len(keys) == 4 and (keys[0], keys[2]) == ("stages", "streams")
    return is_path and isinstance(data.get("stages"), list)


def _take_out(name: str, streams: dict[str, Any], known: dict[str, Any], setting: str) -> None:
    """Remove a stream that was set to null from the streams; it must be one of those before."""
    if name not in known:
        raise RecipeError(f"--set {setting}: there is no such stream; {nearest(name, known)}")
    del streams[name]
    if not streams:
        raise RecipeError(f"--set {setting}: a stage needs a stream, and this is its only one.")


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
    return _without_withdrawn(_read(found, (*extended, path.resolve())), document)


def _without_withdrawn(base: Document, change: Document) -> Document:
    """A document changed by another; a null below `differs` takes back an inherited line."""
    lines, inherited = change.data.get("differs"), base.data.get("differs")
    document = merged(base, change)
    if not isinstance(lines, dict) or not isinstance(inherited, dict):
        return document
    for topic in [topic for topic, line in lines.items() if line is None]:
        if topic not in inherited:
            place = change.where(("differs", topic))
            hint = nearest(topic, inherited)
            raise RecipeError(f"{place}: differs: there is no line {topic!r} to take back; {hint}")
        del document.data["differs"][topic]
    return document


def _parse(path: Path) -> Document:
    data, places = yaml_text.read(path)
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise RecipeError(f"{path} must hold settings (key: value), not {data!r:.40}.")
    return Document(data=data, places={(): f"{path}:1", **places})


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
        raise RecipeError(
            f"--set {setting}: {str(key)!r} cannot be set below the plain value {data!r}. Shorten "
            "the path."
        )
    inner = dict(data or {})
    inner[str(key)] = _set(inner.get(str(key)), rest, value, setting)
    return inner
