"""Predictions as files, for the official scripts and for whoever looks at them.

    FOLDER/TASK/SCENARIO/seed-0/de.json

Answers are SQuAD's JSON, id to text, with the best spans of each question beside it
(`de.n-best.json`); tags are conlleval's columns, word, gold and predicted; labels, and indices of
alternatives, are one a line. All are in the order of the task's file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from isoglot.whole_file import write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetune.span import Span
    from isoglot.tasks.base import Kind
    from isoglot.tasks.examples import Question

_SUFFIXES: dict[Kind, str] = {
    "classify": ".txt",
    "tag": ".conll",
    "span": ".json",
    "choice": ".txt",
}


def folder_of(root: Path, task: str, label: str, seed: int) -> Path:
    """Where the predictions of one training lie."""
    return root / task / re.sub(r"[^\w.=-]+", "-", label) / f"seed-{seed}"


def file_of(folder: Path, kind: Kind, language: str) -> Path:
    """Where the predictions in one language lie."""
    return folder / f"{language}{_SUFFIXES[kind]}"


def write_predictions(
    file: Path, kind: Kind, examples: Sequence[Any], predictions: Sequence[Any]
) -> None:
    """Write what a model says of some examples."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(examples, predictions, strict=True))
    if kind == "span":
        write_json(file, {example.id: said for example, said in pairs}, indent=1)
    elif kind == "tag":
        file.write_text(
            "".join(_sentence(example.words, example.tags, said) for example, said in pairs),
            encoding="utf-8",
        )
    else:
        file.write_text("".join(f"{said}\n" for _, said in pairs), encoding="utf-8")


def write_n_best(
    file: Path, examples: Sequence[Question], candidates: Sequence[Sequence[Span]]
) -> None:
    """Write the best spans of each question beside its answer, best first."""
    found = {
        example.id: [
            {"text": example.context[span.start : span.end].strip(), "score": span.score}
            for span in spans
        ]
        for example, spans in zip(examples, candidates, strict=True)
    }
    write_json(file.with_suffix(".n-best.json"), found, indent=1)


def _sentence(words: Sequence[str], gold: Sequence[str], said: Sequence[str]) -> str:
    """A word a line and an empty line; a space inside a word would be read as a column."""
    rows = zip(("_".join(word.split()) for word in words), gold, said, strict=True)
    return "".join(f"{' '.join(row)}\n" for row in rows) + "\n"
