"""mLAMA: LAMA's facts in 53 languages, with the objects of a relation to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.tasks.examples import Fact
from isoglot.tasks.facts import FactTask, filled
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import cell, damaged, json_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isoglot.tasks.base import Part

_RELATIONS = {
    "1-1": "P36 P1376",
    "N-1": "P17 P19 P20 P30 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 "
    "P407 P413 P449 P495 P740",
    "N-M": "P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412",
}
_KINDS = {relation: kind for kind, names in _RELATIONS.items() for relation in names.split()}
"""LAMA's kinds of the T-REx relations, which mLAMA's files do not repeat."""

_LANGUAGES = (
    "af ar az be bg bn ca ceb cs cy da de el en es et eu fa fi fr ga gl he hi hr hu hy id it ja ka "
    "ko la lt lv ms nl pl pt ro ru sk sl sq sr sv ta th tr uk ur vi zh"
)


class Mlama(FactTask):
    """mLAMA (Kassner et al. 2021): 53 languages, 41 T-REx and 3 Google-RE relations. CC BY-NC 4.0.

    The folder is `mlama1.1/en/` with `templates.jsonl` and one file a relation, `P19.jsonl`. What a
    fact's object is chosen from are all objects of its relation in that language (typed querying).
    The kinds of the T-REx relations are LAMA's. The dataset folder has all languages in one file,
    and no dates of birth.
    """

    name = "mlama"
    languages = "53"
    line = "facts as cloze sentences, many languages"
    paper = "Kassner et al. 2021"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("mlama1.1/{language}/*.jsonl", split="test"),
        *hub("m_lama", "all", tuple(_LANGUAGES.split())),
    )

    @override
    def read(self, part: Part) -> list[Fact]:
        relations: dict[str, list[_Triple]] = {}
        for triple in _from_hub(part) if is_hub_file(part.files[0]) else _from_files(part):
            relations.setdefault(triple.relation, []).append(triple)
        facts: list[Fact] = []
        for relation, triples in sorted(relations.items()):
            objects = tuple(dict.fromkeys(triple.object for triple in triples))
            facts += [
                Fact(
                    id=triple.id,
                    relation=relation,
                    group=_group(relation),
                    prompt=filled(triple.template, triple.subject),
                    answers=(triple.object,),
                    candidates=objects,
                )
                for triple in triples
            ]
        return facts


class _Triple(NamedTuple):
    id: str
    relation: str
    template: str
    subject: str
    object: str


def _triple(path: Path, number: int, row: dict[str, Any], relation: str, template: str) -> _Triple:
    return _Triple(
        id=str(row.get("uuid") or f"{relation}-{number}"),
        relation=relation,
        template=template,
        subject=cell(path, number, row, "sub_label"),
        object=cell(path, number, row, "obj_label"),
    )


def _from_files(part: Part) -> Iterator[_Triple]:
    files = {path.name.split(".")[0]: path for path in part.files}
    of_templates = files.pop("templates", None)
    if of_templates is None:
        raise damaged(part.files[0], 1, "there is no templates.jsonl beside it.")
    templates = {
        cell(of_templates, number, row, "relation"): cell(of_templates, number, row, "template")
        for number, row in json_lines(of_templates)
    }
    for relation, path in files.items():
        if relation not in templates:
            raise damaged(path, 1, f"{of_templates.name} has no template of {relation}.")
        for number, row in json_lines(path):
            yield _triple(path, number, row, relation, templates[relation])


def _from_hub(part: Part) -> list[_Triple]:
    """The rows of a language; the files have those of all."""
    needed = "predicate_id", "template", "sub_label", "obj_label", "language"
    triples = [
        _triple(
            path,
            number,
            row,
            cell(path, number, row, "predicate_id"),
            cell(path, number, row, "template"),
        )
        for path in part.files
        for number, row in hub_rows(path, *needed, where=("language", part.language))
    ]
    if not triples:
        raise CorpusError(
            f"{part.files[0]}: has no facts in {part.language!r}. Fetch the dataset that "
            "docs/evaluate.md names, or give --languages that the file has."
        )
    return triples


def _group(relation: str) -> str:
    """The corpus of a relation, with its kind where LAMA gives it one."""
    if relation in _KINDS:
        return f"T-REx {_KINDS[relation]}"
    return "T-REx" if relation.startswith("P") and relation[1:].isdigit() else "Google-RE"
