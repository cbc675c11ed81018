"""BUCC: find the translations hidden in two large collections of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Mined
from isoglot.tasks.finding import FileTask, Layout
from isoglot.tasks.lines import damaged, numbered_lines
from isoglot.tasks.parallel import sibling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind, Part


class Bucc(FileTask[Mined, tuple[int, int]]):
    """BUCC 2018 (Zweigenbaum et al.): de fr ru zh with English, up to 570,000 sentences a side.

    About 2 to 3 % of them are translations. Given out for research. The links of the test part were
    never given out: as everywhere, the training part is the test and the sample is dev. Files are
    `de-en.training.de`, `.en` and `.gold` in a folder of the pair: `id TAB sentence`, and
    `id TAB id`.
    """

    name = "bucc"
    languages = "de fr ru zh with en"
    line = "translations hidden among other sentences"
    kind: ClassVar[Kind] = "mining"
    version = 2  # the threshold is that of the dev part, vectors are those of the first token
    metrics = (Metric(name="f1"), Metric(name="precision"), Metric(name="recall"))
    paper = "Zweigenbaum et al. 2018"
    licence = "research use only"
    layouts: ClassVar = (
        Layout("bucc2018/{language}-{other}/{language}-{other}.training.{language}", split="test"),
        Layout("bucc2018/{language}-{other}/{language}-{other}.sample.{language}", split="dev"),
    )

    @override
    def read(self, part: Part) -> list[Mined]:
        path = part.files[0]
        one, other = path.name.split(".")[0].split("-")
        second_path, gold_path = sibling(path, one, other), sibling(path, one, "gold")
        first, second = _by_id(path), _by_id(second_path)
        examples = []
        for number, line in numbered_lines(gold_path):
            ids = line.split("\t")
            if len(ids) != 2 or ids[0] not in first or ids[1] not in second:
                raise damaged(gold_path, number, f"{line!r} does not name two sentences left.")
            examples.append(Mined(first=first.pop(ids[0]), second=second.pop(ids[1])))
        examples += [Mined(first=text, second=None) for text in first.values()]
        return examples + [Mined(first=None, second=text) for text in second.values()]

    @override
    def score(
        self, examples: Sequence[Mined], predictions: Sequence[tuple[int, int]], language: str
    ) -> dict[str, float]:
        """Over pairs: a pair is right where both sides are of one example."""
        pairs = set(predictions)
        right = sum(first == second for first, second in pairs)
        gold = sum(None not in (example.first, example.second) for example in examples)
        precision = right / len(pairs) if pairs else 0.0
        recall = right / gold if gold else 0.0
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        return {"f1": f1, "precision": precision, "recall": recall}


def _by_id(path: Path) -> dict[str, str]:
    found = {}
    for number, line in numbered_lines(path):
        name, tab, text = line.partition("\t")
        if not tab or not text.strip() or name in found:
            raise damaged(path, number, "is not a new id, a tab and a sentence.")
        found[name] = text
    return found
