"""Errors of public functions name arguments of Python, where a command names its options.

    evaluate(...)        "eval has no files of tatoeba. Name their folder with `data`; ..."
    isoglot evaluate     "eval has no files of tatoeba. Name their folder with --data; ..."

Messages are written with the options of the command line, whose names are those of the arguments
with `--` and hyphens. A function with `@public` raises them in the words of Python, unless the
command line runs. Whole commands (`isoglot prepare FILE --out FOLDER`) are left as they are.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
R = TypeVar("R")

_COMMAND = re.compile(
    r"(?:\bisoglot [a-z]+(?: (?:extract|graph|link))? |\btorchrun |\bray start )[^,;:`()\n]*?"
    r"(?=[,;:`()\n]|\.(?:\s|$)|$)"
)
"""A whole command, up to the end of its sentence or part of a sentence."""
_FETCH = re.compile(r", or add --fetch\b")
_ASSIGNED = re.compile(r"--(text|pairs) ([\w-]+)=(\S+\w)")
_SETTING = re.compile(r"--set (?=\S)")
_VALUE = re.compile(
    r"--(?!no-)([a-z][a-z-]*) "
    r"(\d[\w.]*|[A-Z]{2,}\b|(?:last|exact|faiss)\b|[\w-]+\.tsv\b|\S+(?=:\s))"
)
_FLAG = re.compile(r"--(resume|overwrite|update|early-stopping)\b")
_NEGATED = re.compile(r"--no-([a-z][a-z-]*)")
_PLACE = re.compile(r"--([a-z][a-z-]*)(?=:)")
"""An option that a message begins with."""
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_RENAMED = {
    "set": "settings",
    "source": "sources",
    "test": "tests",
    "dictionary": "dictionaries",
    "format": "formats",
    "estimate": "estimate_memory",
}
"""Options whose argument, or function, has another name."""

_of_command_line: ContextVar[bool] = ContextVar("of_command_line", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """While it lasts, messages keep the options of the command line."""
    before = _of_command_line.set(True)
    try:
        yield
    finally:
        _of_command_line.reset(before)


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors name its arguments, not options of a command."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except IsoglotError as error:
            if not _of_command_line.get():
                error.args = (in_python(str(error)),)
            raise

    return call


def in_python(message: str) -> str:
    """A message with arguments in the place of options; whole commands stay."""
    message = _FETCH.sub("", message)
    parts, end = [], 0
    for command in _COMMAND.finditer(message):
        parts += [_arguments(message[end : command.start()]), command.group()]
        end = command.end()
    return "".join([*parts, _arguments(message[end:])])


def _arguments(text: str) -> str:
    text = _ASSIGNED.sub(r'\1={"\2": "\3"}', text)
    text = _SETTING.sub("", text)
    text = _VALUE.sub(lambda found: f"{_name(found[1])}={found[2]}", text)
    text = _FLAG.sub(lambda found: f"{_name(found[1])}=True", text)
    text = _NEGATED.sub(lambda found: f"{_name(found[1])}=False", text)
    text = _PLACE.sub(lambda found: _name(found[1]), text)
    return _OPTION.sub(lambda found: f"`{_name(found[1])}`", text)


def _name(option: str) -> str:
    return _RENAMED.get(option, option.replace("-", "_"))
