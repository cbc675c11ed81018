"""mLAMA: LAMA's facts in 53 languages, with the objects of a relation to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.examples import Fact
from isoglot.tasks.facts import FactTask, filled
from isoglot.tasks.finding import Layout
from isoglot.tasks.lines import cell, damaged, json_lines

if TYPE_CHECKING:
    from isoglot.tasks.base import Part

_RELATIONS = {
    "1-1": "P36 P1376",
    "N-1": "P17 P19 P20 P30 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 "
    "P407 P413 P449 P495 P740",
    "N-M": "P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412",
}
_KINDS = {relation: kind for kind, names in _RELATIONS.items() for relation in names.split()}
"""LAMA's kinds of the T-REx relations, which mLAMA's files do not repeat."""


class Mlama(FactTask):
    """mLAMA (Kassner et al. 2021): 53 languages, 41 T-REx and 3 Google-RE relations. CC BY-NC 4.0.

    The folder is `mlama1.1/en/` with `templates.jsonl` and one file a relation, `P19.jsonl`. What a
    fact's object is chosen from are all objects of its relation in that language (typed querying).
    The kinds of the T-REx relations are LAMA's.
    """

    name = "mlama"
    languages = "53"
    line = "facts as cloze sentences, many languages"
    paper = "Kassner et al. 2021"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (Layout("mlama1.1/{language}/*.jsonl", split="test"),)

    @override
    def read(self, part: Part) -> list[Fact]:
        files = {path.name.split(".")[0]: path for path in part.files}
        of_templates = files.pop("templates", None)
        if of_templates is None:
            raise damaged(part.files[0], 1, "there is no templates.jsonl beside it.")
        templates = {
            cell(of_templates, number, row, "relation"): cell(of_templates, number, row, "template")
            for number, row in json_lines(of_templates)
        }
        facts: list[Fact] = []
        for relation, path in files.items():
            if relation not in templates:
                raise damaged(path, 1, f"{of_templates.name} has no template of {relation}.")
            rows = list(json_lines(path))
            objects = {cell(path, number, row, "obj_label"): None for number, row in rows}
            facts += [
                Fact(
                    id=str(row.get("uuid") or f"{relation}-{number}"),
                    relation=relation,
                    group=_group(relation),
                    prompt=filled(templates[relation], cell(path, number, row, "sub_label")),
                    answers=(cell(path, number, row, "obj_label"),),
                    candidates=tuple(objects),
                )
                for number, row in rows
            ]
        return facts


def _group(relation: str) -> str:
    """The corpus of a relation, with its kind where LAMA gives it one."""
    if relation in _KINDS:
        return f"T-REx {_KINDS[relation]}"
    return "T-REx" if relation.startswith("P") and relation[1:].isdigit() else "Google-RE"
