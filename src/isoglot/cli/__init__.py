"""The command line: one thin file per verb. Faults a user can mend are said in a sentence."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from isoglot import __version__
from isoglot.errors import IsoglotError

_VERBS = (
    "demo",
    "prepare",
    "knowledge",
    "pretrain",
    "finetune",
    "evaluate",
    "translate",
    "study",
    "report",
    "draw",
    "transfer",
    "transplant",
    "vocabulary",
    "cooccurrence",
    "show",
)
"""In the order in which a newcomer meets them."""


class _InOrder(TyperGroup):
    """Lists the verbs in their order in the help."""

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_VERBS.index)


app = typer.Typer(
    name="isoglot",
    help="Cross-lingual encoders: prepare text, pre-train any Hugging Face encoder, score it.",
    cls=_InOrder,
    no_args_is_help=True,
    add_completion=False,
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
    """Options of all verbs."""


def main() -> None:
    """Run the command line; a user's fault ends in its sentence, not in a traceback."""
    # verbs register themselves with `app`
    from isoglot.cli import (  # noqa: F401
        cooccurrence,
        demo,
        draw,
        evaluate,
        finetune,
        knowledge,
        prepare,
        pretrain,
        report,
        show,
        study,
        transfer,
        translate,
        transplant,
        vocabulary,
    )

    try:
        app()
    except IsoglotError as error:
        print(f"isoglot: {error}", file=sys.stderr)
        if os.environ.get("ISOGLOT_TRACEBACK"):
            raise
        sys.exit(1)
