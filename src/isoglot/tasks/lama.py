"""LAMA: what does a masked language model know of facts? In English, from four corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot.tasks.examples import Fact
from isoglot.tasks.facts import OBJECT, FactTask, filled
from isoglot.tasks.finding import Layout
from isoglot.tasks.lines import cell, damaged, json_lines
from isoglot.tasks.parallel import beside

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import Part

_GOOGLE_RE = {
    "place_of_birth": "[X] was born in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
    "place_of_death": "[X] died in [Y] .",
}
"""LAMA keeps these three templates in its code."""
_MOST_WORDS = 100


class Lama(FactTask):
    """LAMA (Petroni et al. 2019), four corpora of facts. CC BY-NC 4.0.

    Its files have 5,527 facts of Google-RE, 34,039 of T-REx, 11,458 of ConceptNet and 305 of SQuAD.
    Of these, LAMA's script leaves out what is left out here: facts of Google-RE that more judges
    deny than confirm, a subject and object that the relation has already, and sentences of
    ConceptNet and SQuAD with over 100 words.

    The folder is LAMA's
    own `data`: `Google_RE/place_of_birth_test.jsonl`, `TREx/P19.jsonl` with the templates in
    `relations.jsonl`, `ConceptNet/test.jsonl`, `Squad/test.jsonl`. ConceptNet and SQuAD count as
    one relation each, as in LAMA. Asked with one mask, as LAMA does: facts whose object is not one
    token of the model are left out, so that the count of a score depends on the vocabulary.
    """

    name = "lama"
    version = 3  # facts that LAMA's script leaves out
    masks = 1
    languages = "en"
    line = "facts as cloze sentences, English"
    paper = "Petroni et al. 2019; XLM-K, Table 5"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("lama/data/*/*.jsonl", ("en",), "test"),
        Layout("LAMA/data/*/*.jsonl", ("en",), "test"),
    )

    @override
    def read(self, part: Part) -> list[Fact]:
        facts: list[Fact] = []
        for path in part.files:
            match path.parent.name:
                case "Google_RE":
                    relation = path.name.split(".")[0].removesuffix("_test")
                    template = _GOOGLE_RE.get(relation)
                    if template is None:
                        raise damaged(path, 1, f"LAMA has no relation {relation}.")
                    facts += _templated(path, relation, f"Google-RE {relation}", template)
                case "TREx":
                    relation = path.name.split(".")[0]
                    relations = _relations(path)
                    if relation not in relations:
                        raise damaged(path, 1, f"relations.jsonl has no relation {relation}.")
                    template, kind = relations[relation]
                    facts += _templated(path, relation, f"T-REx {kind}", template)
                case "ConceptNet":
                    facts += _sentences(path, "ConceptNet")
                case "Squad":
                    facts += _sentences(path, "SQuAD")
                case other:
                    raise damaged(path, 1, f"LAMA has no corpus {other}.")
        return facts


def _relations(path: Path) -> dict[str, tuple[str, str]]:
    """Template and kind (1-1, N-1, N-M) of each relation, from the file that lies above."""
    file = beside(path.parent, "relations.jsonl")
    return {
        cell(file, number, row, "relation"): (
            cell(file, number, row, "template"),
            cell(file, number, row, "type"),
        )
        for number, row in json_lines(file)
    }


def _templated(path: Path, relation: str, group: str, template: str) -> list[Fact]:
    """The facts of a relation: each subject and object once, unless most judges deny it."""
    facts: dict[tuple[str, str], Fact] = {}
    for number, row in json_lines(path):
        if _denied(path, number, row):
            continue
        subject, said = cell(path, number, row, "sub_label"), cell(path, number, row, "obj_label")
        fact = Fact(
            id=str(row.get("uuid") or f"{relation}-{number}"),
            relation=relation,
            group=group,
            prompt=filled(template, subject),
            answers=(said,),
        )
        facts.setdefault((subject, said), fact)
    return list(facts.values())


def _denied(path: Path, number: int, row: dict[str, Any]) -> bool:
    """Do more judges deny a fact than confirm it? Only Google-RE's facts were judged."""
    try:
        said = [judged["judgment"] == "yes" for judged in row.get("judgments", ())]
    except (KeyError, TypeError) as error:
        raise damaged(
            path, number, f"its judgments are not a list of yes and no ({error})."
        ) from error
    return said.count(False) > said.count(True)


def _sentences(path: Path, corpus: str) -> list[Fact]:
    found = [
        Fact(
            id=str(row.get("uuid") or row.get("id") or f"{corpus}-{number}"),
            relation=corpus,
            group=corpus,
            prompt=_cloze(path, number, row),
            answers=(cell(path, number, row, "obj_label"),),
        )
        for number, row in json_lines(path)
    ]
    return [fact for fact in found if len(fact.prompt.split()) <= _MOST_WORDS]


def _cloze(path: Path, number: int, row: dict[str, Any]) -> str:
    text = " ".join(map(str, row.get("masked_sentences") or [""]))
    if text.count("[MASK]") != 1:
        raise damaged(path, number, "its masked sentences do not have one [MASK].")
    return text.replace("[MASK]", OBJECT)
