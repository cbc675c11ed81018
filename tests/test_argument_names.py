"""Errors of public functions name arguments of Python; those of commands name options."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import isoglot
from isoglot.argument_names import command_line, in_python
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(isoglot.__file__).parent
COMMANDS_ALONE = {"cli", "demo", "explore", "report", "study", "argument_names.py"}
"""What no public function calls."""
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def messages() -> Iterator[tuple[str, str]]:
    """File, line and text of every string with an option, docstrings apart."""
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE)
        if place.parts[0] in COMMANDS_ALONE:
            continue
        tree = ast.parse(file.read_text("utf-8"))
        docstrings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        parts_of_others = [one for node in joined for one in ast.walk(node) if one is not node]
        skipped = {id(node) for node in (*docstrings, *parts_of_others)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (
                    one.value if isinstance(one, ast.Constant) else "VALUE" for one in node.values
                )
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if OPTION.search(text):
                yield f"{place}:{node.lineno}", text


def test_no_message_keeps_an_option_but_in_whole_commands():
    found = dict(messages())
    assert len(found) > 80
    whole = re.compile(r"(isoglot [a-z]+|torchrun|ray start)\b[^,;()`]*")
    for place, text in found.items():
        assert not OPTION.search(whole.sub("", in_python(text))), (place, in_python(text))


@pytest.mark.parametrize(
    ("said", "in_words_of_python"),
    [
        ("Choose another folder with --out.", "Choose another folder with `out`."),
        ("Add --resume to continue it.", "Add resume=True to continue it."),
        ("Train it with --no-code-switch.", "Train it with code_switch=False."),
        ("--layer 15: the model has layers 0 to 4.", "layer=15: the model has layers 0 to 4."),
        ("--push-to-hub me/x: is no name.", "push_to_hub=me/x: is no name."),
        ("Name one with --source.", "Name one with `sources`."),
        ("--hours: 0 is no time.", "hours: 0 is no time."),
        ("--set batch.rows=a: is no number.", "batch.rows=a: is no number."),
        ("give pairs (--pairs en-sw=FILE).", 'give pairs (pairs={"en-sw": "FILE"}).'),
        ("Run isoglot fetch ud --out eval, or add --fetch.", "Run isoglot fetch ud --out eval."),
        ("`isoglot prepare FILE --out FOLDER` makes one.",) * 2,
        ("isoglot export runs/a.b --checkpoint last. Or --corpus FOLDER.",
         "isoglot export runs/a.b --checkpoint last. Or corpus=FOLDER."),
        ("a range 1--5, and a--b",) * 2,
    ],
)  # fmt: skip
def test_options_become_arguments(said, in_words_of_python):
    assert in_python(said) == in_words_of_python


def test_public_functions_speak_of_arguments_and_commands_of_options(tmp_path):
    def refused() -> str:
        with pytest.raises(IsoglotError) as error:
            isoglot.load_recipe("tiny", ["stages.7.steps=2"])
        return str(error.value)

    assert refused().startswith("stages.7.steps=2: '7' must be a place in a list")
    with command_line():
        assert refused().startswith("--set stages.7.steps=2: '7' must be")
    assert refused().startswith("stages.7")
    with pytest.raises(IsoglotError, match="Name the folder of the tasks' files with `data` "):
        isoglot.evaluate(model(tmp_path), ["tatoeba"], tmp_path / "nothing")


def model(folder: Path) -> Path:
    """A folder that looks like a model's."""
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    return folder
