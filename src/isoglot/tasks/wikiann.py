"""WikiAnn (PAN-X): names of people, places and organisations in Wikipedia text, made by machine."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from isoglot.tasks.columns import ColumnTask
from isoglot.tasks.finding import Layout, hub


class WikiAnn(ColumnTask):
    """Pan et al. 2017, in the balanced splits of Rahimi et al. 2019: 282 languages, 7 tags.

    English and most large languages: 20,000 train, 10,000 dev, 10,000 test sentences; small ones
    have as few as 100. Silver data. No licence is stated; the text is Wikipedia's (CC BY-SA). The
    words of the original carry a prefix, `de:Berlin`, which is taken off.
    """

    name = "wikiann"
    languages = "282"
    line = "names in Wikipedia text"
    paper = "Pan et al. 2017; Rahimi et al. 2019"
    licence = "text CC BY-SA, annotation unstated"
    layouts: ClassVar = (
        Layout("ner/wikiann/{language}.{split}.tsv"),
        Layout("wikiann/{language}/{split}"),
        Layout("panx/{split}-{language}.tsv"),
        *hub("wikiann"),
    )

    @override
    def clean(self, word: str, language: str) -> str:
        return word.removeprefix(f"{language}:") or word
