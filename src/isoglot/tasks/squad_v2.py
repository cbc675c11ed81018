"""SQuAD 2.0: questions that the paragraph may not answer.

Scored as the official v2.0 script does without probabilities of "no answer": an empty prediction
says that there is none. Answers that normalisation leaves nothing of do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.squad import QuestionTask, normalize_english, overlap_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.tasks.examples import Question


def percentages_v2(examples: Sequence[Question], predictions: Sequence[str]) -> dict[str, float]:
    """What the v2.0 script prints: all questions, those with an answer, those without."""
    groups: dict[str, list[tuple[int, float]]] = {"": [], "HasAns_": [], "NoAns_": []}
    for example, prediction in zip(examples, predictions, strict=True):
        answers = [normalize_english(answer.text) for answer in example.answers]
        said = normalize_english(prediction)
        usable = [answer for answer in answers if answer] or [""]
        scores = int(said in usable), max(_f1(said.split(), answer.split()) for answer in usable)
        groups[""].append(scores)
        groups["HasAns_" if example.answers else "NoAns_"].append(scores)
    return {
        f"{group}{metric}": 100.0 * sum(pair[index] for pair in pairs) / len(pairs)
        for group, pairs in groups.items()
        for index, metric in ((1, "f1"), (0, "exact"))
        if pairs
    }


def _f1(prediction: list[str], answer: list[str]) -> float:
    if not prediction or not answer:
        return float(prediction == answer)
    return overlap_f1(prediction, answer)


class SquadV2(QuestionTask):
    """SQuAD 2.0 (Rajpurkar et al. 2018): 130,319 train and 11,873 dev questions. CC BY-SA 4.0.

    A third of the train questions and half of dev have no answer.
    """

    name = "squad-v2"
    languages = "en"
    line = "answers in a paragraph, or none"
    paper = "Rajpurkar et al. 2018"
    licence = "CC BY-SA 4.0"
    metrics = tuple(
        Metric(name=f"{group}{metric}")
        for group in ("", "HasAns_", "NoAns_")
        for metric in ("f1", "exact")
    )
    layouts: ClassVar = (
        Layout("squad/{split}-v2.0.json", ("en",)),
        *hub("squad_v2", "squad_v2", ("en",)),
    )

    @override
    def score(
        self, examples: Sequence[Question], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        found = percentages_v2(examples, predictions)
        return {metric: percent / 100 for metric, percent in found.items()}
