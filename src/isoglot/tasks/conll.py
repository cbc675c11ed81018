"""CoNLL-2002 and 2003: names of people, places, organisations and others in news."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.entities import as_iob2
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.lines import latin_lines

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import Part
    from isoglot.tasks.examples import Tagged

_COLUMNS = Columns(separator=None, comment=re.compile("-DOCSTART-"), lines=latin_lines)


class Conll(ColumnTask):
    """CoNLL-2002 (es nl) and CoNLL-2003 (de en), which papers score and train on together.

    Sentences for train, dev and test. Spanish: 8,323, 1,915 and 1,517; Dutch: 15,806, 2,895, 5,195;
    English: 14,041, 3,250, 3,453; German: 12,152, 2,867, 3,005. For research use only: the text is
    that of newspapers and agencies. Latin-1 or UTF-8. Models that learn all four languages at once
    (`--scenario pooled`) are the CoNLL rows of XLM-K and ERNIE-M; one alone is `--languages es`.

    2003's files are in IOB1 (a name begins with B only after another of its type), 2002's in IOB2
    (always): all are read as IOB2, so that languages learned together have the same tags.
    """

    name = "conll"
    version = 2  # IOB2 throughout
    languages = "de en es nl"
    line = "names in news"
    paper = "Tjong Kim Sang 2002; Tjong Kim Sang and De Meulder 2003"
    licence = "research use only"
    layouts: ClassVar = (
        Layout("conll2002/{language}.{split}"),
        Layout("conll2003/{language}.{split}"),
        *hub("conll2002"),
        *hub("conll2003", "conll2003", ("en",)),
    )

    @override
    def columns(self, path: Path) -> Columns:
        return _COLUMNS

    @override
    def read(self, part: Part) -> list[Tagged]:
        return [replace(example, tags=as_iob2(example.tags)) for example in super().read(part)]
