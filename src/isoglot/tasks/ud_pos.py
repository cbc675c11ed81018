"""Universal parts of speech, from Universal Dependencies treebanks and MasakhaPOS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric
from isoglot.tasks.classification import accuracy
from isoglot.tasks.columns import Columns, ColumnTask
from isoglot.tasks.entities import entity_scores
from isoglot.tasks.finding import Layout, hub

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.examples import Tagged

_TAGS = re.compile(
    "ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X|_"
)


class UdPos(ColumnTask):
    """UD (Nivre et al. 2020), 17 tags. English EWT: 12,544 train, 2,001 dev, 2,077 test sentences.

    Licences are the treebanks' own, mostly CC BY-SA, some CC BY-NC-SA. All treebanks of a language
    that lie in the folder make one part. Words that a token is split into count, the token itself
    (`1-2`) and empty nodes (`3.1`) do not.

    `accuracy` is over words. `xtreme_f1` is what XTREME's script gives under the name of F1: runs
    of one tag are taken for entities, so that it is lower than the accuracy. It counts as seqeval
    0.0.12 of that time does; seqeval 1.2 reads tags without a dash in another way.
    """

    name = "ud-pos"
    languages = "over 150"
    line = "parts of speech"
    paper = "Nivre et al. 2020"
    licence = "per treebank: CC BY-SA or CC BY-NC-SA"
    metrics = (Metric(name="accuracy"), Metric(name="xtreme_f1"))
    hub_columns = ("tokens", "upos")
    layouts: ClassVar = (
        Layout("ud_pos/{language}_*.{split}.tsv"),
        Layout("ud/UD_*/{language}_*-ud-{split}.conllu"),
        Layout("udpos/{split}-{language}.tsv"),
        *hub("universal_dependencies", "{language}_*"),
    )

    @override
    def columns(self, path: Path) -> Columns:
        if ".conllu" in path.name:
            skipped = re.compile(r"#|\d+[-.]\d+\t")
            return Columns(word=1, tag=3, fewest=10, comment=skipped, allowed=_TAGS)
        return Columns(allowed=_TAGS)

    @override
    def score(
        self, examples: Sequence[Tagged], predictions: Sequence[Sequence[str]], language: str
    ) -> dict[str, float]:
        true = [tag for example in examples for tag in example.tags]
        right = accuracy(true, [tag for tags in predictions for tag in tags])
        xtreme = entity_scores([example.tags for example in examples], predictions)
        return {"accuracy": right, "xtreme_f1": xtreme["f1"]}
