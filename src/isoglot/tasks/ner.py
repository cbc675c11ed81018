"""Named entity recognition: CoNLL-2002/2003, WikiAnn, MasakhaNER, GermEval 2014, UNER."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.languages import from_wikipedia
from isoglot.tasks.data_files import latin1_lines
from isoglot.tasks.layouts import Layout, hf_layouts
from isoglot.tasks.tagging import ColumnFormat, TaggingTask, TreebankTask, to_iob2

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import TaskSplit
    from isoglot.tasks.examples import TaggedSentence


class Conll(TaggingTask):
    """CoNLL-2002 (es nl) and CoNLL-2003 (de en): people, places, organizations, others in news.

    Sentences for train, dev and test. Spanish: 8,323, 1,915 and 1,517; Dutch: 15,806, 2,895, 5,195;
    English: 14,041, 3,250, 3,453; German: 12,152, 2,867, 3,005. Research use only: the text is
    that of newspapers and agencies. Latin-1 or UTF-8. A model trained on all four languages
    (`--scenario pooled`) is the CoNLL row of XLM-K and ERNIE-M; one alone is `--languages es`.

    CoNLL-2003 has IOB1 tags (B only after an entity of the same type), CoNLL-2002 has IOB2 (B at
    each entity); all are read as IOB2, so that languages trained together have the same tags.
    """

    name = "conll"
    version = 2  # IOB2 in all languages
    languages = "de en es nl"
    summary = "names in news"
    paper = "Tjong Kim Sang 2002; Tjong Kim Sang and De Meulder 2003"
    license = "research use only"
    layouts: ClassVar = (
        Layout("conll2002/{language}.{split}"),
        Layout("conll2003/{language}.{split}"),
        *hf_layouts("conll2002"),
        *hf_layouts("conll2003", "conll2003", ("en",)),
    )

    @override
    def format(self, path: Path) -> ColumnFormat:
        document_mark = re.compile("-DOCSTART-")
        return ColumnFormat(separator=None, comment=document_mark, lines=latin1_lines)

    @override
    def read(self, split: TaskSplit) -> list[TaggedSentence]:
        return [replace(example, tags=to_iob2(example.tags)) for example in super().read(split)]


class WikiAnn(TaggingTask):
    """WikiAnn, PAN-X (Pan et al. 2017), in the splits of Rahimi et al. 2019: 282 languages.

    Seven tags: people, places and organizations in Wikipedia text, annotated automatically. English
    and most large languages: 20,000 train, 10,000 dev, 10,000 test sentences; small ones as few as
    100. The words of the original have a prefix, `de:Berlin`, which is removed. Files have the
    codes of Wikipedias: `als` is Alemannic (`gsw`), `zh-min-nan` is `nan`.
    """

    name = "wikiann"
    languages = "282"
    summary = "names in Wikipedia text"
    paper = "Pan et al. 2017; Rahimi et al. 2019"
    license = "text CC BY-SA, annotation unstated"
    layouts: ClassVar = (
        Layout("ner/wikiann/{wikipedia}.{split}.tsv"),
        Layout("wikiann/{wikipedia}/{split}"),
        Layout("panx/{split}-{wikipedia}.tsv"),
        *hf_layouts("wikiann", "{wikipedia}"),
    )

    @override
    def clean(self, word: str, language: str) -> str:
        prefix, _, rest = word.partition(":")
        return rest if rest and from_wikipedia(prefix) == language else word


class MasakhaNer(TaggingTask):
    """MasakhaNER 1.0 (Adelani et al. 2021): news in ten African languages, PER, ORG, LOC and DATE.

    Swahili: 2,109 train, 300 dev, 604 test sentences; Hausa 1,912, 276, 552; Yoruba 2,171, 305,
    645.
    """

    name = "masakhaner"
    languages = "10 African"
    summary = "names and dates in African news"
    paper = "Adelani et al. 2021"
    license = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("ner/masakhaner/{language}.{split}.conll"),
        Layout("masakhaner/data/{language}/{split}.txt"),
        *hf_layouts("masakhaner"),
    )

    @override
    def format(self, path: Path) -> ColumnFormat:
        return ColumnFormat(separator=" ")


class MasakhaNer2(MasakhaNer):
    """MasakhaNER 2.0 (Adelani et al. 2022): news in 20 African languages, PER, ORG, LOC and DATE.

    Nine of them are in MasakhaNER 1.0 too, with other splits: the two are scored apart.
    """

    name = "masakhaner2"
    languages = "20 African"
    paper = "Adelani et al. 2022"
    layouts: ClassVar = (
        Layout("ner/masakhaner2/{language}.{split}.conll"),
        Layout("MasakhaNER2.0/data/{language}/{split}.txt"),
        *hf_layouts("masakhaner2"),
    )


class GermEval(TaggingTask):
    """GermEval 2014 (Benikova et al. 2014): 24,000 train, 2,200 dev, 5,100 test sentences.

    German news and Wikipedia. Four kinds of names, each also as `deriv` and `part` of a compound:
    12 types. Only the outer of two layers of tags is read, so the F1 is the shared task's outer
    metric.
    """

    name = "germeval2014"
    languages = "de"
    summary = "names in German text, outer layer"
    paper = "Benikova et al. 2014"
    license = "CC BY 4.0"
    layouts: ClassVar = (
        Layout("ner/germeval2014/{split}.tsv", ("de",)),
        Layout("germeval2014/NER-de-{split}.tsv", ("de",)),
        *hf_layouts("germeval_14", "germeval_14", ("de",)),
    )

    @override
    def format(self, path: Path) -> ColumnFormat:
        return ColumnFormat(word=1, tag=2, min_columns=4, comment=re.compile(r"#\t"))


class UniversalNer(TreebankTask):
    """UNER v1 (Mayhew et al. 2024): PER, ORG and LOC, annotated by people, 13 languages.

    English EWT: 2,001 dev and 2,077 test sentences; Chinese GSD: 3,997 train, 500 dev, 500 test.
    The sentences are those of the UD treebanks of `ud-pos`; each is scored alone, and the score
    of a language is their mean.
    """

    name = "uner"
    languages = "13"
    summary = "names in UD treebanks"
    paper = "Mayhew et al. 2024"
    license = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("ner/uner/{language}_*.{split}.tsv"),
        Layout("uner/UNER_*/{language}_*-ud-{split}.iob2"),
        *hf_layouts("universal_ner", "{language}_*"),
    )

    @override
    def format(self, path: Path) -> ColumnFormat:
        if ".iob2" in path.name:
            return ColumnFormat(word=1, tag=2, min_columns=3, comment=re.compile("# "))
        return ColumnFormat()
