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


class Mlama(FactTask):
    """mLAMA (Kassner et al. 2021): 53 languages, 41 T-REx and 3 Google-RE relations. CC BY-NC 4.0.

    The folder is `mlama1.1/en/` with `templates.jsonl` and one file a relation, `P19.jsonl`. What a
    fact's object is chosen from are all objects of its relation in that language (typed querying).
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
            group = "T-REx" if relation.startswith("P") and relation[1:].isdigit() else "Google-RE"
            facts += [
                Fact(
                    id=str(row.get("uuid") or f"{relation}-{number}"),
                    relation=relation,
                    group=group,
                    prompt=filled(templates[relation], cell(path, number, row, "sub_label")),
                    answers=(cell(path, number, row, "obj_label"),),
                    candidates=tuple(objects),
                )
                for number, row in rows
            ]
        return facts
