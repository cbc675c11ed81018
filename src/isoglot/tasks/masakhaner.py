"""MasakhaNER: names, places, organisations and dates in news of African languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.finding import Layout, hub

if TYPE_CHECKING:
    from pathlib import Path


class MasakhaNer(ColumnTask):
    """MasakhaNER 1.0 (Adelani et al. 2021): ten languages, PER, ORG, LOC and DATE.

    Swahili: 2,109 train, 300 dev, 604 test sentences; Hausa 1,912, 276, 552; Yoruba 2,171, 305,
    645. CC BY-NC 4.0.
    """

    name = "masakhaner"
    languages = "10 African"
    line = "names and dates in African news"
    paper = "Adelani et al. 2021"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("ner/masakhaner/{language}.{split}.conll"),
        Layout("masakhaner/data/{language}/{split}.txt"),
        *hub("masakhaner"),
    )

    @override
    def columns(self, path: Path) -> Columns:
        return Columns(separator=" ")
