"""GermEval 2014: names in German news and Wikipedia, the outer layer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.finding import Layout, hub

if TYPE_CHECKING:
    from pathlib import Path


class GermEval(ColumnTask):
    """GermEval 2014 (Benikova et al. 2014): 24,000 train, 2,200 dev, 5,100 test sentences.

    Four kinds of names, each also as `deriv` and `part` of a compound: 12 types. A sentence has
    outer and inner tags; only the outer ones are read, so the F1 is the shared task's outer metric.
    CC BY 4.0.
    """

    name = "germeval2014"
    languages = "de"
    line = "names in German text, outer layer"
    paper = "Benikova et al. 2014"
    licence = "CC BY 4.0"
    layouts: ClassVar = (
        Layout("ner/germeval2014/{split}.tsv", ("de",)),
        Layout("germeval2014/NER-de-{split}.tsv", ("de",)),
        *hub("germeval_14", "germeval_14", ("de",)),
    )

    @override
    def columns(self, path: Path) -> Columns:
        return Columns(word=1, tag=2, fewest=4, comment=re.compile(r"#\t"))
