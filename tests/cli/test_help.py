"""The help tells a newcomer what to write, and starting up costs little."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any

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


def test_commands_have_the_options_that_an_example_shows(isoglot):
    isoglot("--help")  # registers the commands
    top = typer.main.get_command(app)
    shown = 0
    for name, command in every_command(top):
        commands = re.findall(r"^ +.+", command.epilog or "", flags=re.MULTILINE)
        assert max(map(len, commands), default=0) <= 78, "a folded command cannot be copied"
        text = re.sub(r"\\\n", " ", command.epilog or "")
        for line in re.findall(r"^ +(?:torchrun .* -m )?isoglot (.+)", text, flags=re.MULTILINE):
            words = shlex.split(line)
            known: Any = top
            while hasattr(known, "commands"):
                known = known.commands[words.pop(0)]
            options = {one for it in known.params for one in (*it.opts, *it.secondary_opts)}
            assert {word for word in words if re.match("--?[a-z]", word)} <= options, (name, line)
            shown += 1
    assert shown > 40


def test_square_brackets_of_a_help_text_are_printed(isoglot):
    """Rich takes `isoglot[explore]` for its own markup, and prints `isoglot`."""
    isoglot("--help")  # registers the commands
    for name, command in every_command(typer.main.get_command(app)):
        texts = [command.help or "", *(getattr(one, "help", "") or "" for one in command.params)]
        said = isoglot(*name, "--help").out
        for bracket in re.findall(r"\[[a-z]+\]", " ".join(texts)):
            assert bracket in said, (name, bracket)


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
