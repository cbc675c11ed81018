"""Natural language inference: XNLI, esXNLI and SICK.

Does the first sentence entail the second, contradict it, or neither?
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Split, TaskSplit
from isoglot.tasks.classification import ClassificationTask
from isoglot.tasks.data_files import read_rows
from isoglot.tasks.examples import LabeledText
from isoglot.tasks.language_sets import language_set
from isoglot.tasks.layouts import Layout, hf_layouts

if TYPE_CHECKING:
    from pathlib import Path

_LABELS = ("entailment", "neutral", "contradiction")
_XNLI_LANGUAGES = language_set("xnli")
_XNLI_SPELLINGS = {"contradictory": "contradiction", **dict(zip("012", _LABELS, strict=True))}
"""XNLI's translated train files spell one label differently; CSV files may have its number."""
_SICK_SETS: dict[str, Split] = {"TRAIN": "train", "TRIAL": "dev", "TEST": "test"}
_WHOLE_SICK = re.compile(r"(nl|pt)\.tsv|SICK_BR\.txt")
"""Files whose rows name their split."""
_SICK_LABELS = ("entailment_judgment", "entailment_label_Ja", "entailment_label", "label")


class Xnli(ClassificationTask):
    """XNLI (Conneau et al. 2018): 15 languages, 2,490 dev and 5,010 test pairs.

    Row i is the same pair in every language, and i is its id. Train is MultiNLI, 392,702 pairs, in
    English or machine-translated (`multinli.train.de.tsv` of XNLI-MT-1.0). Translations into other
    languages are read too, also as CSV.
    """

    name = "xnli"
    languages = "15"
    summary = "entailment, contradiction or neither"
    paper = "Conneau et al. 2018"
    license = "CC BY-NC 4.0"
    labels = _LABELS
    layouts: ClassVar = (
        Layout("nli/xnli/{language}.{split}.tsv"),
        Layout("nli/xnli/{language}.{split}.csv"),
        Layout("xnli/{language}/{split}.csv"),
        Layout("XNLI-1.0/xnli.{split}.tsv", _XNLI_LANGUAGES),
        Layout("XNLI-MT-1.0/multinli/multinli.{split}.{language}.tsv"),
        *hf_layouts("xnli"),
    )

    @override
    def read(self, split: TaskSplit) -> list[LabeledText]:
        examples: list[LabeledText] = []
        for row in read_rows(split.files):
            if row.get("language", split.language) != split.language:
                continue
            label = row.text("label", "gold_label")
            first, second = f"sentence1_{split.language}", f"sentence2_{split.language}"
            examples.append(
                LabeledText(
                    id=str(len(examples) + 1),  # some files have a pairID, others do not
                    first=row.text(first, "sentence1", "premise"),
                    second=row.text(second, "sentence2", "hypothesis", "hypo"),
                    label=self.checked_label(row, _XNLI_SPELLINGS.get(label, label)),
                )
            )
        return examples


class EsXnli(Xnli):
    """esXNLI (Artetxe et al. 2020): 2,490 pairs written in Spanish and translated into English.

    Its original language is Spanish, so it shows what translated test sets cannot show.
    """

    name = "esxnli"
    languages = "es en"
    summary = "entailment, written in Spanish"
    paper = "Artetxe et al. 2020"
    license = "unstated"
    layouts: ClassVar = (
        Layout("nli/esxnli.tsv", ("es", "en"), "test"),
        Layout("esxnli/esxnli.tsv", ("es", "en"), "test"),
    )


class Sick(ClassificationTask):
    """SICK (Marelli et al. 2014), from image captions: 4,500 train, 500 dev, 4,927 test pairs.

    Dutch (Wijnholds and Moortgat 2021): 4,439, 495 and 4,906 of them. Portuguese (SICK-BR, Real et
    al. 2018, no license stated): 9,840 pairs. Japanese (Yanaka and Mineshima 2022), annotated
    again: 5,000 train and 4,927 test.
    """

    name = "sick"
    languages = "en ja nl pt"
    summary = "entailment between captions"
    paper = "Marelli et al. 2014"
    license = "CC BY-NC-SA 3.0; nl MIT; ja CC BY-SA 4.0"
    labels = _LABELS
    layouts: ClassVar = (
        Layout("nli/sick/{language}.{split}.tsv"),
        Layout("nli/sick/nl.tsv", ("nl",), "train"),
        Layout("nli/sick/pt.tsv", ("pt",), "train"),
        Layout("SICK-BR/SICK_BR.txt", ("pt",), "train"),
        *hf_layouts("sick", "default", ("en",)),
    )

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        """The Dutch and the Portuguese file hold all three splits."""
        found: list[TaskSplit] = []
        for split in super().splits(folder):
            is_whole = _WHOLE_SICK.match(split.files[0].name) is not None
            names = _SICK_SETS.values() if is_whole else (split.name,)
            found.extend(TaskSplit(split.language, name, split.files) for name in names)
        return found

    @override
    def read(self, split: TaskSplit) -> list[LabeledText]:
        examples = []
        for row in read_rows(split.files, optional=True):
            set_name = row.get("SemEval_set")
            if set_name is not None and _SICK_SETS.get(set_name) != split.name:
                continue
            examples.append(
                LabeledText(
                    id=row.text("pair_ID", "id"),
                    first=row.text("sentence_A_Ja", "sentence_A"),
                    second=row.text("sentence_B_Ja", "sentence_B"),
                    label=self.checked_label(row, row.text(*_SICK_LABELS).lower()),
                )
            )
        return examples
