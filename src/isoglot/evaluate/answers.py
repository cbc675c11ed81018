"""Answers to cloze facts, kept in a file, and those of two models side by side (XLM-K, Table 6).

One JSON object a line: `task`, `language`, `id`, `prompt`, `answers` (the right ones), `said`,
`typed` (chosen from candidates; empty where there were none) and `right`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isoglot.tasks.facts import folded
from isoglot.tasks.lines import json_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import TextIOBase
    from pathlib import Path

    from isoglot.evaluate.probing import Guess
    from isoglot.tasks.examples import Fact


def write_answer(stream: TextIOBase, task: str, language: str, fact: Fact, guess: Guess) -> None:
    """Add what a model said of one fact."""
    right = folded(guess.said) in {folded(answer) for answer in fact.answers}
    row = {
        "task": task,
        "language": language,
        "id": fact.id,
        "prompt": fact.prompt,
        "answers": fact.answers,
        "said": guess.said,
        "typed": guess.typed,
        "right": right,
    }
    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def side_by_side(first: Path, second: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The facts that both files have and on which the two models do not say the same."""
    others = {_key(row): row for _, row in json_lines(second)}
    for _, row in json_lines(first):
        other = others.get(_key(row))
        if other is not None and folded(row["said"]) != folded(other["said"]):
            yield row, other


def _key(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return row["task"], row["language"], row["id"], row["prompt"]
