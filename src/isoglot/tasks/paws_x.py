"""PAWS-X: do two sentences with the same words say the same?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.classification import ClassifyTask
from isoglot.tasks.examples import Classified
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, table_rows

if TYPE_CHECKING:
    from isoglot.tasks.base import Part


class PawsX(ClassifyTask):
    """PAWS-X (Yang et al. 2019): seven languages, 2,000 dev and 2,000 test pairs each.

    Train is 49,401 English pairs, or their machine translation. Free for any purpose. Where the
    translators gave up the file has `NS` for a sentence (German: 68 dev and 32 test pairs); such
    pairs count, since published scores are over all 2,000.
    """

    name = "paws-x"
    languages = "de en es fr ja ko zh"
    line = "paraphrase or not"
    paper = "Yang et al. 2019"
    licence = "free for any purpose"
    labels = ("0", "1")
    layouts: ClassVar = (
        Layout("pawsx/{language}.{split}.tsv"),
        Layout("x-final/{language}/{split}.tsv"),
        *hub("paws-x"),
    )

    @override
    def read(self, part: Part) -> list[Classified]:
        examples = []
        for path in part.files:
            rows = hub_rows(path) if is_hub_file(path) else table_rows(path)
            for number, row in rows:
                first = cell(path, number, row, "sentence1")
                second = cell(path, number, row, "sentence2")
                label = self.label(path, number, cell(path, number, row, "label"))
                examples.append(
                    Classified(
                        id=cell(path, number, row, "id"), first=first, second=second, label=label
                    )
                )
        return examples
