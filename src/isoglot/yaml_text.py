"""YAML in and out: plain data, the line of each value, and limits that hostile files meet.

The only place that reads and writes YAML. PyYAML implements YAML 1.1, in which 1e-4 is text, `no`
is false and 2024-01-01 is a date. `Loader` and `Dumper` follow YAML 1.2 in these: `no` is
Norwegian. What one writes, the other reads back. No tag makes an object. Aliases are expanded, so
that a few lines could stand for billions of values: the number of values, their depth and the size
of a file are limited.
"""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from typing_extensions import override

from isoglot.errors import RecipeError

if TYPE_CHECKING:
    from pathlib import Path

Key = tuple[str | int, ...]
"""The path of a value, (`stages`, 0, `steps`)."""

MAX_BYTES = 4_000_000
"""Of a file; the largest built-in recipe has 5,000."""
MAX_DEPTH = 40
"""Mappings and lists inside one another; recipes have six."""
MAX_VALUES = 100_000
"""Values of a file, each alias counted with all that it stands for."""

_TAG = "tag:yaml.org,2002:"
_REPLACED = {f"{_TAG}bool", f"{_TAG}timestamp", f"{_TAG}float"}
_FLOAT = re.compile(
    r"^([-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN))$"
)
_BOOL = re.compile(r"^(true|True|TRUE|false|False|FALSE)$")
_SHOWN = 40
"""Characters of a value that a message quotes."""


class Loader(yaml.SafeLoader):
    """Reads plain data only, no objects, and no deeper than `MAX_DEPTH`."""

    _depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(
                None, None, f"it is nested more than {MAX_DEPTH} deep", mark
            )
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


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


def read(path: Path) -> tuple[Any, dict[Key, str]]:
    """The data of a file, none if it is empty, and the place (`FILE:LINE`) of each value."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise RecipeError(
                f"{path} has more than {MAX_BYTES:,} bytes: it is not a file of settings."
            )
        text = content.decode("utf-8")
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error.strerror}{_near(path)}") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path} cannot be read: it is not UTF-8 text.") from error
    return parse(text, str(path))


def _near(path: Path) -> str:
    """The end of a sentence on a file that cannot be read: a YAML file of a similar name."""
    try:
        files = [] if path.exists() else [one.name for one in path.parent.glob("*.y*ml")]
    except OSError:
        files = []
    # without their endings: .yaml alone makes two names similar
    stems = {name.rpartition(".")[0]: name for name in files}
    for stem in difflib.get_close_matches(path.stem, stems, n=1, cutoff=0.6):
        return f"; did you mean {stems[stem]!r}?"
    return "."


def parse(text: str, name: str, *, lines: bool = True) -> tuple[Any, dict[Key, str]]:
    """The data of a YAML text, and the place of each value: the text's name and maybe a line."""
    try:
        node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark is not None and lines else name
        raise RecipeError(f"{place}: this is not YAML; {_reason(error)}.") from error
    if node is None:
        return None, {}
    reading = _Reading(name=name, lines=lines)
    return reading.plain(node, ()), reading.places


def write(data: Any, *, one_line: bool = False) -> str:
    """Plain data as YAML that `parse` gives back."""
    text: str = yaml.dump(
        data,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=one_line,
        width=sys.maxsize if one_line else 100,
    )
    return text


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The values of one text, counted while they are read."""

    name: str
    lines: bool
    places: dict[Key, str] = field(default_factory=dict)
    around: list[yaml.Node] = field(default_factory=list)
    """The mappings and lists that the value being read is in."""
    num_values: int = 0

    def plain(self, node: yaml.Node, path: Key) -> Any:
        """Plain data from a node."""
        self.places[path] = self.place(node)
        self.num_values += 1
        if self.num_values > MAX_VALUES:
            raise RecipeError(
                f"{self.name} has more than {MAX_VALUES:,} values, those that aliases (*name) "
                "stand for included. Remove some."
            )
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if any(node is one for one in self.around):
            raise RecipeError(f"{self.place(node)}: an alias (*name) stands for what it is in.")
        self.around.append(node)
        data: Any
        if isinstance(node, yaml.MappingNode):
            data = self.mapping(node, path)
        else:
            data = [self.plain(item, (*path, i)) for i, item in enumerate(node.value)]
        self.around.pop()
        return data

    def mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self.place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise RecipeError(f"{place}: a name is a mapping or a list. Write it as text.")
            key = str(key_node.value)
            if key in data:
                raise RecipeError(f"{place}: {key!r} is given twice.")
            data[key] = self.plain(value_node, (*path, key))
            self.places[(*path, key)] = place
        return data

    def scalar(self, node: yaml.ScalarNode) -> Any:
        """One value; a tag that it does not fit, or a number too long, is refused."""
        try:
            return Loader("").construct_object(node)
        except yaml.YAMLError as error:
            raise RecipeError(f"{self.place(node)}: this is not YAML; {_reason(error)}.") from error
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            kind, value = node.tag.removeprefix(_TAG), str(node.value)
            shown = f"{value[:_SHOWN]}..." if len(value) > _SHOWN else value
            raise RecipeError(f"{self.place(node)}: {shown!r} cannot be read as {kind}.") from error

    def place(self, node: yaml.Node) -> str:
        return f"{self.name}:{node.start_mark.line + 1}" if self.lines else self.name


def _reason(error: yaml.YAMLError) -> str:
    """What the parser did not like, without its quotation of the text."""
    return getattr(error, "problem", None) or "it has characters that YAML does not allow"
