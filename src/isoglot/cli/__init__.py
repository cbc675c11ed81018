"""The command line: one thin file for each command. User errors are printed as one sentence."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from isoglot import __version__
from isoglot.errors import IsoglotError

_COMMANDS = (
    "demo",
    "prepare",
    "knowledge",
    "pretrain",
    "finetune",
    "evaluate",
    "translate",
    "study",
    "report",
    "transplant",
    "vocabulary",
    "cooccurrence",
    "analyze",
    "show",
)
"""The order of the commands in `isoglot --help`: that in which a new user meets them."""

_MODULES = tuple(name for name in _COMMANDS if name != "vocabulary")  # in transplant.py
"""The files of this folder that register commands."""


class _OrderedGroup(TyperGroup):
    """Lists the commands in the order of `_COMMANDS`."""

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        found = super().list_commands(ctx)
        return [name for name in dict.fromkeys((*_COMMANDS, *found)) if name in found]

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        for one in (command, *getattr(command, "commands", {}).values()):
            if one is not None and one.help:
                # typer keeps the line ends of a docstring; a terminal has its own width
                one.help = "\n\n".join(" ".join(p.split()) for p in one.help.split("\n\n"))
        return command


app = typer.Typer(
    name="isoglot",
    help="Cross-lingual encoders: prepare text, pre-train any Hugging Face encoder, score it.",
    cls=_OrderedGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        print(f"isoglot {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Options of all commands."""


def load_commands(command: str | None = None) -> None:
    """Register the commands with `app`: only the given one if a file has its name, else all."""
    for name in [command] if command in _MODULES else _MODULES:
        import_module(f"isoglot.cli.{name}")


def main() -> None:
    """Run the command line; an `IsoglotError` is printed as its message, without a traceback."""
    load_commands(sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        app()
    except IsoglotError as error:
        print(f"isoglot: {error}", file=sys.stderr)
        if os.environ.get("ISOGLOT_TRACEBACK"):
            raise
        sys.exit(1)
