"""The command line: one thin file for each command. User errors are printed as one sentence."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from isoglot import __version__
from isoglot.argument_names import command_line
from isoglot.atomic import disk_fault, write_error_message
from isoglot.cli import help_table
from isoglot.errors import IsoglotError
from isoglot.remote.faults import report_faults

_COMMANDS = (
    "demo",
    "adapt",
    "fetch",
    "prepare",
    "knowledge",
    "pretrain",
    "watch",
    "finetune",
    "evaluate",
    "explore",
    "align",
    "mine",
    "translate",
    "export",
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


_HELP = {"-h", "--help"}
_NOISY = ("torchao", "torch.utils._pytree")
"""transformers imports torchao where it is installed, which warns of kernels that nobody uses."""


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
    context_settings={"help_option_names": sorted(_HELP, reverse=True)},
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
    """Run the command line; what the user can mend is printed in a sentence, without a traceback.

    That is an `IsoglotError`, a fault of the disk from whichever library, and an error of the
    system that names a file.
    """
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    load_commands(sys.argv[1] if len(sys.argv) > 1 else None)
    if _HELP & set(sys.argv):
        help_table.install()
    try:
        with command_line(), report_faults(lambda note: print(f"note: {note}", file=sys.stderr)):
            app()
    except BrokenPipeError:
        # the reader of a pipe has enough (`| head`); Python would flush once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        message = _message(error)
        if message is None or os.environ.get("ISOGLOT_TRACEBACK"):
            raise
        print(f"isoglot: {message}", file=sys.stderr, flush=True)
        if (code := getattr(error, "exit_code", None)) is not None:
            os._exit(code)  # another process of the run is lost: cleaning up would wait for it
        sys.exit(1)


def _message(error: Exception) -> str | None:
    """The sentence for an error that the user can mend; none for a fault of the program."""
    if isinstance(error, IsoglotError):
        return str(error)
    place = getattr(error, "filename", None)
    fault = disk_fault(error)
    if fault is not None:
        return write_error_message(place or "The disk", fault)
    if isinstance(error, OSError) and error.strerror and place is not None:
        return f"{place}: {error.strerror}."
    return None
