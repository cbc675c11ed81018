"""A recipe as commented YAML: every setting with its value and the sentence its owner wrote.

Reads settings, and the string literal that follows each field in the source of its class; gives
YAML that can be saved, edited and loaded again.

    optimizer:                      # The optimizer and its learning rate.
      name: adamw                   # AdamW (fused) or LAMB (from pytorch_optimizer). [adamw | lamb]
      weight_decay: 0.01            # Decay of weight matrices and embeddings. [from 0 to 10]

The values that a setting may have follow in brackets, where its type names them.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import types
import typing
from functools import cache
from typing import Annotated, Any

from isoglot import yaml_text
from isoglot.batching.streams import StreamConfig
from isoglot.objectives import Objective
from isoglot.ranges import Range, types_of
from isoglot.recipe.structure import plain

_COLUMN = 34
"""Where comments begin."""
_WIDTH = 100
_NONE = re.compile(r"\bnone(?=:| means)")


def explained(settings: Any) -> str:
    """Settings as YAML, complete and commented."""
    return "\n".join(_fields(settings, plain(settings))) + "\n"


def explained_part(section: str, name: str, settings: Any) -> str:
    """The settings of one name of a section, such as an objective, commented."""
    lines = _indented(_entry(name, settings, plain(settings), _about(settings)))
    return "\n".join([f"{section}:", *lines]) + "\n"


@cache
def sentences(kind: type) -> dict[str, str]:
    """What the source of a dataclass, and of those it inherits from, says of each field."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, after in zip(body.body, body.body[1:], strict=False):
            match field, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
    return found


def _fields(settings: Any, data: dict[str, Any]) -> list[str]:
    """The lines of one dataclass; `data` is the same settings as plain data, in order."""
    kind: Any = type(settings)
    said, types_by_name = sentences(kind), types_of(kind)
    lines = []
    for name, value in data.items():
        if name == "kind" and isinstance(settings, StreamConfig):
            lines += _line("kind", value, "The kind of stream it is.")
        else:
            sentence = said.get(name, "")
            if "None" in str(kind.__dataclass_fields__[name].type):
                sentence = _NONE.sub("null", sentence)  # YAML's word; `none` may be a value
            possible = allowed_values(types_by_name[name])
            if sentence and possible:
                sentence = f"{sentence} [{possible}]"
            lines += _entry(name, getattr(settings, name), value, sentence)
    return lines


def allowed_values(kind: Any) -> str:
    """The values that a type allows, in words; empty where it names none."""
    found: list[str] = []
    if typing.get_origin(kind) is tuple:
        of_items = allowed_values(typing.get_args(kind)[0])
        return f"each {of_items}" if of_items else ""
    for option in _options(kind):
        if typing.get_origin(option) is typing.Literal:
            found += [_scalar(value) for value in typing.get_args(option)]
        elif option is bool:
            found += ["true", "false"]
        elif option is type(None) and found:
            found.append("null")
        elif isinstance(option, Range):
            found.append(str(option))
    return " | ".join(found)


def _options(kind: Any) -> list[Any]:
    """The alternatives of a type and the range of its numbers, `None` last."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is Annotated:
        of, *notes = inner
        found = [*notes, *_options(of)]
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        found = [option for one in inner for option in _options(one)]
    else:
        found = [kind]
    return sorted(found, key=lambda option: option is type(None))


def _entry(name: str, settings: Any, value: Any, sentence: str) -> list[str]:
    """One setting, with everything below it."""
    if not isinstance(value, dict | list) or not value or _fits_a_line(value):
        return _line(name, value, sentence)
    lines = _commented(f"{_scalar(name)}:", sentence)
    if isinstance(value, list):
        for inner, item in zip(settings, value, strict=True):
            lines += _item(inner, item)
    elif dataclasses.is_dataclass(settings):
        lines += _indented(_fields(settings, value))
    else:
        for key, item in value.items():
            lines += _indented(_entry(key, settings[key], item, _about(settings[key])))
    return lines


def _item(settings: Any, value: Any) -> list[str]:
    """One item of a list that does not fit a line."""
    if not isinstance(value, dict):
        return [f"- {_scalar(value)}"]
    first, *rest = _indented(_fields(settings, value))
    return [f"- {first[2:]}", *rest]


def _about(settings: Any) -> str:
    """What an objective or a stream is, for the line of its name."""
    if isinstance(settings, Objective):
        return settings.summary[0].upper() + settings.summary[1:] + "."
    if not dataclasses.is_dataclass(settings):
        return ""
    return (inspect.getdoc(type(settings)) or "").split("\n")[0]


def _line(name: str, value: Any, sentence: str) -> list[str]:
    return _commented(f"{_scalar(name)}: {_scalar(value)}", sentence)


def _commented(line: str, sentence: str) -> list[str]:
    """A line and its comment: beside it, or above it where the line is long."""
    if not sentence:
        return [line]
    if len(line) > _COLUMN - 2:
        return [*(f"# {part}" for part in _wrapped(sentence, _WIDTH - 6)), line]
    first, *rest = _wrapped(sentence, _WIDTH - _COLUMN - 2)
    return [f"{line:<{_COLUMN}}# {first}", *(f"{'':<{_COLUMN}}# {part}" for part in rest)]


def _wrapped(sentence: str, width: int) -> list[str]:
    """Lines of a sentence; `testbed-zipf` is a name and is not divided."""
    return textwrap.wrap(sentence, width, break_on_hyphens=False)


def _indented(lines: list[str]) -> list[str]:
    """Two to the right; comments beside a line stay in their column where there is room."""
    return [
        f"  {line[: _COLUMN - 2]}{line[_COLUMN:]}"
        if line[_COLUMN - 3 : _COLUMN + 1] == "   #"  # YAML needs a space before a comment
        else f"  {line}"
        for line in lines
    ]


def _fits_a_line(value: Any) -> bool:
    plain_items = isinstance(value, list) and not any(isinstance(v, dict | list) for v in value)
    return plain_items and len(_scalar(value)) < _WIDTH - 2 * _COLUMN


def _scalar(value: Any) -> str:
    """A value on one line of YAML."""
    return yaml_text.write(value, one_line=True).removesuffix("...\n").strip()
