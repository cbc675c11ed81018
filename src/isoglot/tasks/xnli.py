"""XNLI and esXNLI: does one sentence follow from another, contradict it, or neither?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot.tasks.classification import NLI_LABELS, ClassifyTask
from isoglot.tasks.examples import Classified
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, table_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isoglot.tasks.base import Part

LANGUAGES = (
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
)
_SPELLINGS = {"contradictory": "contradiction"}
"""XNLI's translated train files write one label in another way."""


class Xnli(ClassifyTask):
    """XNLI (Conneau et al. 2018): 15 languages, 2,490 dev and 5,010 test pairs; CC BY-NC 4.0.

    Row i is the same pair in every language, and i is its id. Train is MultiNLI, 392,702 pairs, in
    English or translated by machine (`multinli.train.de.tsv` of XNLI-MT-1.0).
    """

    name = "xnli"
    languages = "15"
    line = "entailment, contradiction or neither"
    paper = "Conneau et al. 2018"
    licence = "CC BY-NC 4.0"
    labels = NLI_LABELS
    layouts: ClassVar = (
        Layout("nli/xnli/{language}.{split}.tsv"),
        Layout("XNLI-1.0/xnli.{split}.tsv", LANGUAGES),
        Layout("XNLI-MT-1.0/multinli/multinli.{split}.{language}.tsv"),
        *hub("xnli"),
    )

    @override
    def read(self, part: Part) -> list[Classified]:
        examples: list[Classified] = []
        for path in part.files:
            for number, row in _rows(path):
                if row.get("language", part.language) != part.language:
                    continue
                said = cell(path, number, row, "label", "gold_label")
                examples.append(
                    Classified(
                        id=str(len(examples) + 1),  # some files have a pairID, others do not
                        first=self._sentence(path, number, row, part.language, first=True),
                        second=self._sentence(path, number, row, part.language, first=False),
                        label=self.label(path, number, _SPELLINGS.get(said, said)),
                    )
                )
        return examples

    def _sentence(
        self, path: Path, number: int, row: dict[str, Any], language: str, *, first: bool
    ) -> str:
        name = "sentence1" if first else "sentence2"
        others = ("premise",) if first else ("hypothesis", "hypo")
        return cell(path, number, row, f"{name}_{language}", name, *others)


class EsXnli(Xnli):
    """esXNLI (Artetxe et al. 2020): 2,490 pairs written in Spanish and translated into English.

    No licence is stated. The original is Spanish, so it shows what translated test sets hide.
    """

    name = "esxnli"
    languages = "es en"
    line = "entailment, written in Spanish"
    paper = "Artetxe et al. 2020"
    licence = "unstated"
    layouts: ClassVar = (
        Layout("nli/esxnli.tsv", ("es", "en"), "test"),
        Layout("esxnli/esxnli.tsv", ("es", "en"), "test"),
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return hub_rows(path) if is_hub_file(path) else table_rows(path)
