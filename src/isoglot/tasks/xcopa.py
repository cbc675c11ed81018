"""XCOPA and COPA: which of two sentences is the cause or the effect of a premise?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.classification import accuracy
from isoglot.tasks.examples import Choice
from isoglot.tasks.finding import FileTask, Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, damaged, json_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.tasks.base import Kind, Part


class CausesTask(FileTask[Choice, int]):
    """A task in COPA's format, JSON lines as SuperGLUE has them."""

    kind: ClassVar[Kind] = "choice"
    version = 1
    metrics = (Metric(name="accuracy"),)

    @override
    def read(self, part: Part) -> list[Choice]:
        examples = []
        for path in part.files:
            for number, row in hub_rows(path) if is_hub_file(path) else json_lines(path):
                asks, right = row.get("question"), row.get("label")
                if asks not in ("cause", "effect") or right not in (0, 1):
                    raise damaged(path, number, f"asks {asks!r} and has the label {right!r}.")
                examples.append(
                    Choice(
                        id=cell(path, number, row, "idx"),
                        premise=cell(path, number, row, "premise"),
                        asks=asks,
                        choices=(
                            cell(path, number, row, "choice1"),
                            cell(path, number, row, "choice2"),
                        ),
                        right=right,
                    )
                )
        return examples

    @override
    def score(
        self, examples: Sequence[Choice], predictions: Sequence[int], language: str
    ) -> dict[str, float]:
        return {"accuracy": accuracy([example.right for example in examples], predictions)}


class Xcopa(CausesTask):
    """XCOPA (Ponti et al. 2020): 11 languages, 100 dev and 500 test premises each. CC BY 4.0.

    There is no train part: papers train on COPA. The Thai files, and the Turkish dev file, ask for
    effects alone, in the distribution already.
    """

    name = "xcopa"
    languages = "11"
    line = "cause or effect of a premise"
    paper = "Ponti et al. 2020"
    licence = "CC BY 4.0"
    layouts: ClassVar = (
        Layout("xcopa/{split}.{language}.jsonl"),
        Layout("xcopa/data/{language}/{split}.{language}.jsonl"),
        *hub("xcopa"),
    )


class Copa(CausesTask):
    """COPA (Roemmele et al. 2011): 400 train and 100 dev premises in English. BSD 2-Clause.

    The folder is SuperGLUE's. Its test part has no labels, and is not read. XCOPA's dev and test
    parts are translations of the dev and test parts here.
    """

    name = "copa"
    languages = "en"
    line = "cause or effect of a premise, English"
    paper = "Roemmele et al. 2011"
    licence = "BSD 2-Clause"
    layouts: ClassVar = (
        Layout("COPA/train.jsonl", ("en",), "train"),
        Layout("COPA/val.jsonl", ("en",), "dev"),
    )
