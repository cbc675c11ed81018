"""Questions on a passage: files in SQuAD's format for the score, and its chance level.

TyDi QA has English questions to train on and test questions in Arabic, Russian and Swahili; XQuAD
has those of four more languages. All become files of one task, so that a single training is scored
in seven languages. Passages of more than 1,000 characters are left out: what is left fits into the
256 positions of the study's models, except a few passages that are read in two windows.

Chance is what an answer gets that was chosen without reading: the same words of every passage, say
the third and fourth. The place and the number of words are those with the best F1 on the training
questions. A random span gets less.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

from isoglot.tasks.squad import normalize_english, read_questions, squad_percentages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.tasks.examples import Question

TRAIN, TEST = 2500, 300
"""Questions of English, and of each tested language."""
MOST_CHARACTERS = 1000
TESTED = {
    **{code: f"tydiqa/{code}.dev" for code in ("ar", "ru", "sw")},
    **{code: f"xquad/{code}" for code in ("de", "es", "tr", "vi")},
}
"""Language -> the file of its questions."""
FOLDER = "tydiqa"
"""Of WORK/tests/eval: what the task reads."""
_FIRST_WORDS, _MOST_WORDS, _TRIED = 30, 6, 400
"""Places, lengths and training questions among which chance is looked for."""


def write_questions(data: Path, out: Path) -> None:
    """OUT/eval/tydiqa/en.train.json and XX.test.json."""
    for name, source, number in (
        ("en.train", "tydiqa/en.train", TRAIN),
        *((f"{code}.test", source, TEST) for code, source in TESTED.items()),
    ):
        kept = list(short(read_squad(data, source)))
        every = max(1, len(kept) // number)
        paragraphs = [
            {"context": context, "qas": [question]} for context, question in kept[::every][:number]
        ]
        file = out / "eval" / FOLDER / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        told = {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
        file.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")


def read_squad(data: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Passage and question of a file of DATA/eval."""
    with lzma.open(data / "eval" / f"{name}.json.xz", "rt", encoding="utf-8") as stream:
        articles = json.load(stream)["data"]
    for paragraph in (one for article in articles for one in article["paragraphs"]):
        yield from ((paragraph["context"], question) for question in paragraph["qas"])


def short(found: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Questions with an answer in a passage that is not too long."""
    return (one for one in found if len(one[0]) <= MOST_CHARACTERS and one[1]["answers"])


@cache
def chance(folder: Path) -> float:
    """F1 in percent of the same words of every passage, the mean over the tested languages."""
    trained = list(read_questions(folder / "en.train.json"))[:_TRIED]
    first, number = max(
        ((first, number) for first in range(_FIRST_WORDS) for number in range(1, _MOST_WORDS + 1)),
        key=lambda place: f1_of(trained, *place),
    )
    tests = [file for file in sorted(folder.glob("*.test.json")) if file.name != "en.test.json"]
    return fmean(f1_of(list(read_questions(file)), first, number) for file in tests)


def f1_of(questions: Sequence[Question], first: int, number: int) -> float:
    """F1 in percent of `number` words from the word `first` on as the answer to all questions."""
    told = [" ".join(one.context.split()[first : first + number]) for one in questions]
    return squad_percentages(questions, told, normalize_english)["f1"]
