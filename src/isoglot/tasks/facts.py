"""Facts to be probed: how cloze predictions are scored, and how prompts are made."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Fact
from isoglot.tasks.finding import FileTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.tasks.base import Kind

OBJECT = "[Y]"
"""Where the object stands in a prompt."""


class FactTask(FileTask[Fact, str]):
    """Precision at one, in each relation, averaged over relations as LAMA does.

    `p@1` is the mean over all relations; `p@1 T-REx` over those of a corpus, `p@1 T-REx N-1` over
    those of a kind. Case and spaces at the ends do not count.
    """

    kind: ClassVar[Kind] = "probe"
    version = 1
    metrics = (Metric(name="p@1"),)
    masks: ClassVar[int] = 5
    """The longest answer in tokens that is asked for, unless another is wished."""

    @override
    def score(
        self, examples: Sequence[Fact], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        right: dict[tuple[str, str], list[bool]] = {}
        for fact, said in zip(examples, predictions, strict=True):
            answers = {folded(answer) for answer in fact.answers}
            right.setdefault((fact.group, fact.relation), []).append(folded(said) in answers)
        means = {key: sum(found) / len(found) for key, found in right.items()}
        groups: dict[str, list[float]] = {"p@1": list(means.values())}
        for (group, _), mean in means.items():
            for name in dict.fromkeys((group.split(" ")[0], group)):
                groups.setdefault(f"p@1 {name}", []).append(mean)
        return {name: sum(values) / len(values) for name, values in groups.items() if values}


def folded(text: str) -> str:
    """A name in the form in which names are compared."""
    return unicodedata.normalize("NFC", text).strip().casefold()


def filled(template: str, subject: str) -> str:
    """A template's prompt for one subject; the object's place is left."""
    return template.replace("[X]", subject).strip()
