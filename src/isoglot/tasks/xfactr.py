"""X-FACTR: facts of Wikidata as cloze sentences in many languages, objects of any length.

A part joins four files: the facts (Wikidata ids), the templates of a language, the names of
entities in it, and, to choose from, the objects that mLAMA lists for each relation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Part
from isoglot.tasks.examples import Fact
from isoglot.tasks.facts import OBJECT, FactTask, filled
from isoglot.tasks.finding import Layout
from isoglot.tasks.lines import cell, damaged, json_lines, numbered_lines, whole_json

if TYPE_CHECKING:
    from pathlib import Path

_MARK = re.compile(r"\[([^\]]*)\]")
_ENGLISH = "TREx-relations"
_NOTHING: tuple[frozenset[str], tuple[str, ...]] = frozenset(), ()
"""Subjects and objects of a relation that mLAMA does not have."""


class Xfactr(FactTask):
    """X-FACTR (Jiang et al. 2020): 46 relations with 1,000 facts each, templates in 13 languages.

    No licence is stated; names are Wikidata's (CC0), candidates mLAMA's (CC BY-NC 4.0). English has
    all 46,000 facts. Elsewhere a fact is left out where its subject or object has no name, and
    where its subject has several and not exactly one of them is among mLAMA's subjects: the files
    do not say which is the usual one. What is left: es 27,821, fr 30,588, ru 16,440, he 14,173,
    tr 13,329, ko 12,801, vi 11,882, el 11,032. All names of an object are right.

    Templates ask for inflected words, which X-FACTR makes with UniMorph. Here they stay as they
    are: `[Y.Acc]` is the name itself, of `[né;X-Gender=MASC|née;...]` the first is taken, and
    articles to be made (`[DEF;X]`) are left out.
    """

    name = "xfactr"
    languages = "el en es fr he ko ru tr vi"
    line = "facts as cloze sentences, long answers"
    paper = "Jiang et al. 2020"
    licence = "CC0, CC BY-NC 4.0, and unstated"
    layouts: ClassVar = (
        Layout(f"lama/xfactr_templates/{_ENGLISH}.jsonl", ("en",), "test"),
        Layout("lama/xfactr_templates/relations.{language}.jsonl", split="test"),
    )

    @override
    def parts(self, folder: Path) -> list[Part]:
        """Languages with both templates and names; a part's files are in the order of `read`."""
        found = []
        for part in super().parts(folder):
            templates = part.files[0]
            root = templates.parent.parent
            names = _only(root / "xfactr_aliases", f"{part.language}.tsv")
            facts = _only(root, "xfactr_mtrexf.jsonl")
            english = _only(templates.parent, f"{_ENGLISH}.jsonl")
            if names is None or facts is None or english is None:
                continue
            choices = _only(root / "mlama_candidates", f"{part.language}.json")
            files = (facts, english, templates, names, *([choices] if choices else []))
            found.append(Part(part.language, part.split, files))
        return found

    @override
    def read(self, part: Part) -> list[Fact]:
        facts, english, templates, names_file, *choices = part.files
        kinds = {
            cell(english, number, row, "relation"): cell(english, number, row, "type")
            for number, row in json_lines(english)
        }
        prompts = _templates(templates)
        names = _names(names_file)
        candidates = _candidates(choices[0]) if choices else {}
        known = {objects: frozenset(objects) for _, objects in [*candidates.values(), _NOTHING]}
        found = []
        for number, row in json_lines(facts):
            relation = cell(facts, number, row, "predicate_id")
            if relation not in prompts or relation not in kinds:
                file = english if relation in prompts else templates
                raise damaged(facts, number, f"{file.name} has no template of {relation}.")
            listed, objects = candidates.get(relation, _NOTHING)
            subjects = names.get(cell(facts, number, row, "sub_uri"), [])
            answers = names.get(cell(facts, number, row, "obj_uri"), [])
            if part.language == "en":
                subjects = [cell(facts, number, row, "sub_label")]
                answers = [cell(facts, number, row, "obj_label"), *answers]
            subject = _usual(subjects, listed)
            if subject is None or not answers:
                continue
            found.append(
                Fact(
                    id=cell(facts, number, row, "uuid"),
                    relation=relation,
                    group=f"X-FACTR {kinds[relation]}",
                    prompt=filled(prompts[relation], subject),
                    answers=tuple(dict.fromkeys(answers)),
                    candidates=() if known[objects].isdisjoint(answers) else objects,
                )
            )
        return found


def _only(folder: Path, name: str) -> Path | None:
    return next(iter(sorted(folder.glob(f"{name}*"))), None)


def _usual(names: list[str], subjects: frozenset[str]) -> str | None:
    if len(names) == 1:
        return names[0]
    listed = [name for name in names if name in subjects]
    return listed[0] if len(listed) == 1 else None


def _candidates(path: Path) -> dict[str, tuple[frozenset[str], tuple[str, ...]]]:
    """Relation -> its subjects and objects."""
    try:
        return {
            relation: (frozenset(names_of["subjects"]), tuple(dict.fromkeys(names_of["objects"])))
            for relation, names_of in whole_json(path).items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise damaged(path, 1, f"does not have subjects and objects by relation ({error}).") from (
            error
        )


def _names(path: Path) -> dict[str, list[str]]:
    found = {}
    for number, line in numbered_lines(path):
        entity, *names = line.split("\t")
        if not names or not re.fullmatch(r"[QP]\d+", entity):
            raise damaged(path, number, "is not a Wikidata id and its names.")
        found[entity] = names
    return found


def _templates(path: Path) -> dict[str, str]:
    found = {}
    for number, row in json_lines(path):
        template = _MARK.sub(_plain, cell(path, number, row, "template"))
        if "[X]" not in template or template.count(OBJECT) != 1:
            raise damaged(path, number, f"{template!r} does not have [X] and one [Y].")
        found[cell(path, number, row, "relation")] = " ".join(template.split())
    return found


def _plain(mark: re.Match[str]) -> str:
    """A mark of a template without its grammar."""
    inside = mark[1].strip()
    name = re.match(r"([XY])(?=$|[.;])", inside.replace("\u0425", "X"))  # once in Cyrillic
    if name is not None:
        return f"[{name[1]}]"
    first = inside.split("|")[0]
    word, _, condition = first.partition(";")
    return word if "=" in condition else ""
