"""Word analogies: a is to b as c is to which word?"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric, Part
from isoglot.tasks.examples import Analogy
from isoglot.tasks.finding import FileTask, Layout
from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind


class AnalogyTask(FileTask[Analogy, str]):
    """Predicted is d, scored in all and by section."""

    kind: ClassVar[Kind] = "analogy"
    version = 1
    metrics = (Metric(name="accuracy"),)

    @override
    def score(
        self, examples: Sequence[Analogy], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        right: dict[str, list[bool]] = {"accuracy": []}
        for example, said in zip(examples, predictions, strict=True):
            right["accuracy"].append(said == example.d)
            right.setdefault(f"accuracy {example.section}", []).append(said == example.d)
        return {metric: sum(found) / len(found) for metric, found in right.items() if found}


class GoogleAnalogies(AnalogyTask):
    """Google's analogies (Mikolov et al. 2013): 19,544 in English, in 14 sections.

    Translated: de 18,552, es 14,764, fr 31,688, zh 953. From repositories under Apache-2.0 and
    LGPL. `a b c d` on a line; a line `: name` begins a section.
    """

    name = "analogy"
    languages = "de en es fr zh"
    line = "a is to b as c is to d"
    paper = "Mikolov et al. 2013"
    licence = "public test sets"
    layouts: ClassVar = (
        Layout("analogy/{language}.google.txt", split="test"),
        Layout("analogy/{language}.questions-words.txt", split="test"),
        Layout("analogy/questions-words.txt", ("en",), "test"),
    )

    @override
    def read(self, part: Part) -> list[Analogy]:
        examples = []
        section = ""
        for path in part.files:
            for number, line in numbered_lines(path):
                words = line.split()
                if words[:1] == [":"]:
                    section = " ".join(words[1:])
                    continue
                if len(words) != 4 or not section:
                    raise damaged(path, number, f"{line!r} is not four words of a section.")
                a, b, c, d = words
                examples.append(Analogy(a=a, b=b, c=c, d=d, section=section))
        return examples


class RoyalAnalogies(AnalogyTask):
    """Table 3 of MLM-GC: king - man + woman, in English, German and mixed, to Queen and to Königin.

    16 analogies, which the paper prints in full; there is no file. The table shows the cosine of
    each, which is scored beside the accuracy.
    """

    name = "analogy-royal"
    languages = "de en"
    line = "king - man + woman, English and German mixed"
    paper = "MLM-GC, Table 3"
    licence = "none needed"
    layouts: ClassVar = ()

    @override
    def parts(self, folder: Path) -> list[Part]:
        del folder
        return [Part("en-de", "test", ())]

    @override
    def read(self, part: Part) -> list[Analogy]:
        return [
            Analogy(a=man, b=king, c=woman, d=queen, section=f"{king}-{man}+{woman} {queen}")
            for king, man, woman, queen in product(
                ("King", "König"), ("Man", "Mann"), ("Woman", "Frau"), ("Queen", "Königin")
            )
        ]
