"""Multiple choice: COPA and XCOPA. Which of two sentences is the cause, or effect, of a premise?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit, accuracy
from isoglot.tasks.data_files import read_rows
from isoglot.tasks.examples import MultipleChoice
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Sequence


class CopaTask(FileTask[MultipleChoice, int]):
    """A task in COPA's format, JSON lines as in SuperGLUE."""

    kind = "multiple-choice"
    version = 1
    metrics = (Metric(name="accuracy"),)

    @override
    def read(self, split: TaskSplit) -> list[MultipleChoice]:
        examples = []
        for row in read_rows(split.files):
            asks, right = row.get("question"), row.get("label")
            if asks not in ("cause", "effect") or right not in (0, 1):
                raise row.error(f"asks {asks!r} and has the label {right!r}.")
            examples.append(
                MultipleChoice(
                    id=row.text("idx"),
                    premise=row.text("premise"),
                    asks=asks,
                    choices=(row.text("choice1"), row.text("choice2")),
                    right=right,
                )
            )
        return examples

    @override
    def score(
        self, examples: Sequence[MultipleChoice], predictions: Sequence[int], language: str
    ) -> dict[str, float]:
        return {"accuracy": accuracy([example.right for example in examples], predictions)}


class Xcopa(CopaTask):
    """XCOPA (Ponti et al. 2020): 11 languages, 100 dev and 500 test premises each.

    It has no train split: papers train on COPA. The Thai files, and the Turkish dev file, have only
    effects, in the original distribution already.
    """

    name = "xcopa"
    languages = "11"
    summary = "cause or effect of a premise"
    paper = "Ponti et al. 2020"
    license = "CC BY 4.0"
    layouts: ClassVar = (
        Layout("xcopa/{split}.{language}.jsonl"),
        Layout("xcopa/data/{language}/{split}.{language}.jsonl"),
        *hf_layouts("xcopa"),
    )


class Copa(CopaTask):
    """COPA (Roemmele et al. 2011): 400 train and 100 dev premises in English.

    The folder is SuperGLUE's; its test split has no labels and is not read. XCOPA's dev and test
    splits are translations of COPA's.
    """

    name = "copa"
    languages = "en"
    summary = "cause or effect of a premise, English"
    paper = "Roemmele et al. 2011"
    license = "BSD 2-Clause"
    layouts: ClassVar = (
        Layout("COPA/train.jsonl", ("en",), "train"),
        Layout("COPA/val.jsonl", ("en",), "dev"),
    )
    companions = ("COPA/test.jsonl",)
