"""The help tells a newcomer what to write, and starting up costs little."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer
from rich.cells import cell_len

from isoglot.cli import _COMMANDS, app

VERBS = {
    ("prepare",): ["sources:", "files: {en: [raw/en.txt.xz]", "--out", "tokenizer"],
    ("pretrain",): ["isoglot show recipes", "--corpus", "--resume", "--set", "torchrun"],
    ("evaluate",): ["--pairs", "en-de.tsv", "are fine-tuned", "--tasks tatoeba,alignment"],
    ("show",): ["recipes", "objectives", "streams", "tasks", "protocol", "recipe", "corpus"],
    ("show", "recipe"): ["--set", "built-in recipe"],
    ("show", "corpus"): ["--alpha", "--samples"],
}


def test_the_verbs_in_the_order_a_newcomer_meets_them(isoglot):
    said = isoglot("--help")
    assert said.code == 0
    assert re.findall(r"^│ (\w+) ", said.out, flags=re.MULTILINE) == list(_COMMANDS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_what_a_newcomer_needs(isoglot, verb):
    said = isoglot(*verb, "--help")
    assert said.code == 0
    for words in VERBS[verb]:
        assert words in said.out


def every_command(command, name=()):
    if hasattr(command, "commands"):
        for inner, below in command.commands.items():
            yield from every_command(below, (*name, inner))
    else:
        yield name, command


def test_every_help_text_fits_a_terminal_of_80_columns(isoglot):
    """No line is longer, and no name of an option is cut off."""
    isoglot("--help")  # registers the commands
    for name, command in every_command(typer.main.get_command(app)):
        said = isoglot(*name, "--help", columns=80)
        assert said.code == 0
        assert not [line for line in said.out.splitlines() if cell_len(line) > 80], name
        assert not re.findall(r"│ .*…", said.out), name
        shown = set(re.findall(r"--[a-z][a-z-]*", said.out))
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert option in shown or not option.startswith("--"), (name, option)


def test_every_option_has_help(isoglot):
    isoglot("--help")  # registers the commands
    for name, command in every_command(typer.main.get_command(app)):
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


def test_the_version(isoglot):
    assert isoglot("--version").out.startswith("isoglot 0.")


@pytest.mark.parametrize("arguments", [["--help"], ["show", "recipes"]])
def test_it_starts_without_torch(arguments):
    script = (
        "import sys\n"
        f"sys.argv = ['isoglot', *{arguments!r}]\n"
        "from isoglot.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    heavy = {'torch', 'transformers', 'numba'} & set(sys.modules)\n"
        "    assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
