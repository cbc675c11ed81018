"""CoNLL-2002 and 2003: names of people, places, organisations and others in news."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.lines import latin_lines

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = Columns(separator=None, comment=re.compile("-DOCSTART-"), lines=latin_lines)


class Conll2002(ColumnTask):
    """Tjong Kim Sang 2002. Spanish: 8,323 train, 1,915 dev, 1,517 test sentences.

    Dutch: 15,806, 2,895, 5,195. For research use only, as the shared task gave it out. Latin-1 or
    UTF-8.
    """

    name = "conll2002"
    languages = "es nl"
    line = "names in Spanish and Dutch news"
    paper = "Tjong Kim Sang 2002"
    licence = "research use only"
    layouts: ClassVar = (
        Layout("conll2002/{language}.{split}"),
        *hub("conll2002"),
    )

    @override
    def columns(self, path: Path) -> Columns:
        return _COLUMNS


class Conll2003(ColumnTask):
    """Tjong Kim Sang & De Meulder 2003. English: 14,041 train, 3,250 dev, 3,453 test sentences.

    German: 12,152, 2,867, 3,005. The annotation is free, the text belongs to Reuters and to the
    Frankfurter Rundschau and may not be given on.
    """

    name = "conll2003"
    languages = "de en"
    line = "names in English and German news"
    paper = "Tjong Kim Sang and De Meulder 2003"
    licence = "research use only"
    layouts: ClassVar = (
        Layout("conll2003/{language}.{split}"),
        *hub("conll2003", "conll2003", ("en",)),
    )

    @override
    def columns(self, path: Path) -> Columns:
        return _COLUMNS
