"""Universal NER: names in sentences of Universal Dependencies treebanks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.finding import Layout, hub

if TYPE_CHECKING:
    from pathlib import Path


class UniversalNer(ColumnTask):
    """UNER v1 (Mayhew et al. 2024): PER, ORG and LOC, annotated by people, 13 languages.

    English EWT: 2,001 dev and 2,077 test sentences; Chinese GSD: 3,997 train, 500 dev, 500 test.
    CC BY-SA 4.0. The sentences are those of the UD treebanks, and of `ud-pos`.
    """

    name = "uner"
    languages = "13"
    line = "names in UD treebanks"
    paper = "Mayhew et al. 2024"
    licence = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("ner/uner/{language}_*.{split}.tsv"),
        Layout("uner/UNER_*/{language}_*-ud-{split}.iob2"),
        *hub("universal_ner", "{language}_*"),
    )

    @override
    def columns(self, path: Path) -> Columns:
        if ".iob2" in path.name:
            return Columns(word=1, tag=2, fewest=3, comment=re.compile("# "))
        return Columns()
