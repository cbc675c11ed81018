"""SICK: entailment between sentences made from image and video captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Part
from isoglot.tasks.classification import NLI_LABELS, ClassifyTask
from isoglot.tasks.examples import Classified
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, table_rows

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import Split

_SETS: dict[str, Split] = {"TRAIN": "train", "TRIAL": "dev", "TEST": "test"}
_LABELS = ("entailment_judgment", "entailment_label_Ja", "entailment_label", "label")


class Sick(ClassifyTask):
    """SICK (Marelli et al. 2014): 4,500 train, 500 dev, 4,927 test pairs in English.

    Dutch (Wijnholds and Moortgat 2021): 4,439, 495 and 4,906 of them. Japanese (Yanaka and
    Mineshima 2022), judged anew: 5,000 train and 4,927 test. English CC BY-NC-SA 3.0, Dutch MIT,
    Japanese CC BY-SA 4.0.
    """

    name = "sick"
    languages = "en nl ja"
    line = "entailment between captions"
    paper = "Marelli et al. 2014"
    licence = "CC BY-NC-SA 3.0; nl MIT; ja CC BY-SA 4.0"
    labels = NLI_LABELS
    layouts: ClassVar = (
        Layout("nli/sick/{language}.{split}.tsv"),
        Layout("nli/sick/nl.tsv", ("nl",), "train"),
        *hub("sick", "default", ("en",)),
    )

    @override
    def parts(self, folder: Path) -> list[Part]:
        """The Dutch file holds all three splits."""
        found: list[Part] = []
        for part in super().parts(folder):
            splits = _SETS.values() if part.language == "nl" else (part.split,)
            found.extend(Part(part.language, split, part.files) for split in splits)
        return found

    @override
    def read(self, part: Part) -> list[Classified]:
        examples = []
        for path in part.files:
            rows = hub_rows(path) if is_hub_file(path) else table_rows(path, optional=True)
            for number, row in rows:
                of_set = row.get("SemEval_set")
                if of_set is not None and _SETS.get(of_set) != part.split:
                    continue
                said = cell(path, number, row, *_LABELS).lower()
                examples.append(
                    Classified(
                        id=cell(path, number, row, "pair_ID", "id"),
                        first=cell(path, number, row, "sentence_A_Ja", "sentence_A"),
                        second=cell(path, number, row, "sentence_B_Ja", "sentence_B"),
                        label=self.label(path, number, said),
                    )
                )
        return examples
