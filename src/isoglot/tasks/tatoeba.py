"""Tatoeba, and translations of your own: find the translation of a sentence among all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.examples import Translated
from isoglot.tasks.finding import FileTask, Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, damaged, numbered_lines
from isoglot.tasks.parallel import line_pairs, sibling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind, Part


class RetrievalTask(FileTask[Translated, int]):
    """Translations, each to be found among those of all other sentences."""

    kind: ClassVar[Kind] = "retrieval"
    version = 1
    metrics = (Metric(name="accuracy@1"),)

    @override
    def read(self, part: Part) -> list[Translated]:
        path = part.files[0]
        if is_hub_file(path):
            return [pair for file in part.files for pair in _hub_pairs(file)]
        if ".tsv" in path.name:
            return [_pair(path, number, line) for number, line in numbered_lines(path)]
        first, second = path.name.removeprefix("tatoeba.").split(".")[0].split("-")
        pairs = line_pairs(path, sibling(path, first, second))
        return [Translated(first=one, second=other) for one, other in pairs]

    @override
    def score(
        self, examples: Sequence[Translated], predictions: Sequence[int], language: str
    ) -> dict[str, float]:
        """Share of first sides whose second side was found; the very same text is as good."""
        right = sum(
            examples[prediction].second == example.second
            for example, prediction in zip(examples, predictions, strict=True)
        )
        return {"accuracy@1": right / len(examples) if examples else 0.0}


class OwnPairs(RetrievalTask):
    """Translations of your own: files named after their languages, two columns, a tab between."""

    name = "retrieval"
    languages = "any"
    line = "the nearest sentence, on translations of your own (--pairs)"
    paper = ""
    licence = "your own"
    layouts: ClassVar = (Layout("{language}-{other}.tsv", split="test"),)


class Tatoeba(RetrievalTask):
    """LASER's Tatoeba test (Artetxe and Schwenk 2019): 112 languages with English, <= 1,000 pairs.

    Swahili has 390 pairs, Thai 548, Urdu and most others 1,000. CC BY 2.0 FR. XTREME scores 36 of
    the languages; its script takes a layer's mean over all tokens and the cosine. The dataset
    folder is XTREME's, these 36, whose one part is called validation.
    """

    name = "tatoeba"
    languages = "112 with en"
    line = "the nearest sentence in the other language"
    paper = "Artetxe and Schwenk 2019; Hu et al. 2020"
    licence = "CC BY 2.0 FR"
    layouts: ClassVar = (
        Layout("tatoeba/{language}-{other}.tsv", split="test"),
        Layout("tatoeba/v1/tatoeba.{language}-{other}.{language}", split="test"),
        Layout("tatoeba/{language}-{other}.{language}", split="test"),
        *hub("xtreme", "tatoeba.{language}", test="validation", other="en"),
    )


def _pair(path: Path, number: int, line: str) -> Translated:
    cells = line.split("\t")
    if len(cells) != 2 or not all(cell.strip() for cell in cells):
        raise damaged(path, number, f"has {len(cells)} columns, two sentences are needed.")
    return Translated(first=cells[0], second=cells[1])


def _hub_pairs(path: Path) -> Iterator[Translated]:
    """The rows of XTREME's dataset, whose sentences still have the ends of their lines."""
    columns = "source_sentence", "target_sentence"
    for number, row in hub_rows(path, *columns):
        for column in columns:
            cell(path, number, row, column)
        first, second = (str(row[column]).rstrip("\r\n") for column in columns)
        yield Translated(first=first, second=second)
