"""Cloze probing of facts in many languages: mLAMA and X-FACTR."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.tasks.base import TaskSplit
from isoglot.tasks.data_files import (
    file_error,
    hf_rows,
    is_hf_file,
    json_lines,
    numbered_lines,
    read_json,
)
from isoglot.tasks.examples import OBJECT, Fact
from isoglot.tasks.lama import ClozeTask, fact_of_row, fill_template
from isoglot.tasks.layouts import Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TREX_RELATIONS = {
    "1-1": "P36 P1376",
    "N-1": "P17 P19 P20 P30 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 "
    "P407 P413 P449 P495 P740",
    "N-M": "P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412",
}
_TREX_KINDS = {
    relation: kind for kind, names in _TREX_RELATIONS.items() for relation in names.split()
}
"""LAMA's kinds of T-REx's relations, which mLAMA's files do not have."""

_MLAMA_LANGUAGES = (
    "af ar az be bg bn ca ceb cs cy da de el en es et eu fa fi fr ga gl he hi hr hu hy id it ja ka "
    "ko la lt lv ms nl pl pt ro ru sk sl sq sr sv ta th tr uk ur vi zh"
)


class Mlama(ClozeTask):
    """mLAMA (Kassner et al. 2021): 53 languages, 41 T-REx and 3 Google-RE relations.

    The folder is `mlama1.1/en/` with `templates.jsonl` and one file per relation, `P19.jsonl`. The
    candidates for an object are all objects of its relation in that language (typed querying). The
    kinds of T-REx's relations are LAMA's. The Hugging Face data set has all languages in one file,
    and no dates of birth.
    """

    name = "mlama"
    languages = "53"
    summary = "facts as cloze sentences, many languages"
    paper = "Kassner et al. 2021"
    license = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("mlama1.1/{language}/*.jsonl", split="test"),
        *hf_layouts("m_lama", "all", tuple(_MLAMA_LANGUAGES.split())),
    )

    @override
    def read(self, split: TaskSplit) -> list[Fact]:
        relations: dict[str, list[Fact]] = {}
        for fact in _from_hf(split) if is_hf_file(split.files[0]) else _from_files(split):
            relations.setdefault(fact.relation, []).append(fact)
        found: list[Fact] = []
        for _, facts in sorted(relations.items()):
            objects = tuple(dict.fromkeys(fact.answers[0] for fact in facts))
            found += [replace(fact, candidates=objects) for fact in facts]
        return found


def _from_files(split: TaskSplit) -> Iterator[Fact]:
    files = {path.name.split(".")[0]: path for path in split.files}
    of_templates = files.pop("templates", None)
    if of_templates is None:
        raise file_error(split.files[0], 1, "there is no templates.jsonl beside it.")
    templates = {row.text("relation"): row.text("template") for row in json_lines(of_templates)}
    for relation, path in files.items():
        if relation not in templates:
            raise file_error(path, 1, f"{of_templates.name} has no template of {relation}.")
        for row in json_lines(path):
            yield fact_of_row(row, relation, _group(relation), templates[relation])


def _from_hf(split: TaskSplit) -> list[Fact]:
    """The rows of one language; the files have all languages."""
    required = "predicate_id", "template", "sub_label", "obj_label", "language"
    facts = []
    for path in split.files:
        for row in hf_rows(path, *required, where=("language", split.language)):
            relation = row.text("predicate_id")
            facts.append(fact_of_row(row, relation, _group(relation), row.text("template")))
    if not facts:
        raise CorpusError(
            f"{split.files[0]}: has no facts in {split.language!r}. Fetch the data set that "
            "docs/tasks.md names, or give --languages that the file has."
        )
    return facts


def _group(relation: str) -> str:
    """The corpus of a relation, with its kind if LAMA gives it one."""
    if relation in _TREX_KINDS:
        return f"T-REx {_TREX_KINDS[relation]}"
    return "T-REx" if relation.startswith("P") and relation[1:].isdigit() else "Google-RE"


_TEMPLATE_MARK = re.compile(r"\[([^\]]*)\]")
_ENGLISH_TEMPLATES = "TREx-relations"
_NO_CANDIDATES: tuple[frozenset[str], tuple[str, ...]] = frozenset(), ()
"""Subjects and objects of a relation that is not in mLAMA."""


class Xfactr(ClozeTask):
    """X-FACTR (Jiang et al. 2020): 46 relations with 1,000 facts each, templates in 13 languages.

    No license is stated; names are Wikidata's (CC0), candidates mLAMA's (CC BY-NC 4.0). English has
    all 46,000 facts. In other languages a fact is left out if its subject or object has no name, or
    if its subject has several names and not exactly one of them is a subject in mLAMA (the files do
    not mark the usual name): es 27,821, fr 30,588, ru 16,440, he 14,173, tr 13,329, ko 12,801, vi
    11,882, el 11,032 facts. All names of an object are correct answers.

    X-FACTR inflects words of its templates with UniMorph; here they are not inflected: `[Y.Acc]`
    is the name itself, the first form of `[né;X-Gender=MASC|née;...]` is used, and articles to be
    generated (`[DEF;X]`) are left out. A split joins four files: the facts (Wikidata ids), the
    templates and the names of entities of a language, and mLAMA's objects as candidates.
    """

    name = "xfactr"
    languages = "el en es fr he ko ru tr vi"
    summary = "facts as cloze sentences, long answers"
    paper = "Jiang et al. 2020"
    license = "CC0, CC BY-NC 4.0, and unstated"
    layouts: ClassVar = (
        Layout(f"lama/xfactr_templates/{_ENGLISH_TEMPLATES}.jsonl", ("en",), "test"),
        Layout("lama/xfactr_templates/relations.{language}.jsonl", split="test"),
    )
    companions = ("lama/mlama_candidates/*", "lama/xfactr_aliases/*", "lama/xfactr_mtrexf.jsonl")

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        """Languages with templates and names; the files of a split are in the order of `read`."""
        found = []
        for split in super().splits(folder):
            templates = split.files[0]
            root = templates.parent.parent
            names = _first_match(root / "xfactr_aliases", f"{split.language}.tsv")
            facts = _first_match(root, "xfactr_mtrexf.jsonl")
            english = _first_match(templates.parent, f"{_ENGLISH_TEMPLATES}.jsonl")
            if names is None or facts is None or english is None:
                continue
            choices = _first_match(root / "mlama_candidates", f"{split.language}.json")
            files = (facts, english, templates, names, *([choices] if choices else []))
            found.append(TaskSplit(split.language, split.name, files))
        return found

    @override
    def read(self, split: TaskSplit) -> list[Fact]:
        facts, english, templates, names_file, *choices = split.files
        kinds = {row.text("relation"): row.text("type") for row in json_lines(english)}
        prompts = _templates(templates)
        names = _names(names_file)
        candidates = _candidates(choices[0]) if choices else {}
        known = {
            objects: frozenset(objects) for _, objects in [*candidates.values(), _NO_CANDIDATES]
        }
        found = []
        for row in json_lines(facts):
            relation = row.text("predicate_id")
            if relation not in prompts or relation not in kinds:
                file = english if relation in prompts else templates
                raise row.error(f"{file.name} has no template of {relation}.")
            listed, objects = candidates.get(relation, _NO_CANDIDATES)
            subjects = names.get(row.text("sub_uri"), [])
            answers = names.get(row.text("obj_uri"), [])
            if split.language == "en":
                subjects = [row.text("sub_label")]
                answers = [row.text("obj_label"), *answers]
            subject = _usual_name(subjects, listed)
            if subject is None or not answers:
                continue
            found.append(
                Fact(
                    id=row.text("uuid"),
                    relation=relation,
                    group=f"X-FACTR {kinds[relation]}",
                    prompt=fill_template(prompts[relation], subject),
                    answers=tuple(dict.fromkeys(answers)),
                    candidates=() if known[objects].isdisjoint(answers) else objects,
                )
            )
        return found


def _first_match(folder: Path, name: str) -> Path | None:
    return next(iter(sorted(folder.glob(f"{name}*"))), None)


def _usual_name(names: list[str], subjects: frozenset[str]) -> str | None:
    if len(names) == 1:
        return names[0]
    listed = [name for name in names if name in subjects]
    return listed[0] if len(listed) == 1 else None


def _candidates(path: Path) -> dict[str, tuple[frozenset[str], tuple[str, ...]]]:
    """Relation -> its subjects and objects."""
    try:
        return {
            relation: (frozenset(names_of["subjects"]), tuple(dict.fromkeys(names_of["objects"])))
            for relation, names_of in read_json(path).items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise file_error(
            path, 1, f"does not have subjects and objects by relation ({error})."
        ) from error


def _names(path: Path) -> dict[str, list[str]]:
    found = {}
    for number, line in numbered_lines(path):
        entity, *names = line.split("\t")
        if not names or not re.fullmatch(r"[QP]\d+", entity):
            raise file_error(path, number, "is not a Wikidata id and its names.")
        found[entity] = names
    return found


def _templates(path: Path) -> dict[str, str]:
    found = {}
    for row in json_lines(path):
        template = _TEMPLATE_MARK.sub(_without_grammar, row.text("template"))
        if "[X]" not in template or template.count(OBJECT) != 1:
            raise row.error(f"{template!r} does not have [X] and one [Y].")
        found[row.text("relation")] = " ".join(template.split())
    return found


def _without_grammar(mark: re.Match[str]) -> str:
    """A mark of a template without its grammar: `[X]`, `[Y]`, or a word."""
    inside = mark[1].strip()
    name = re.match(r"([XY])(?=$|[.;])", inside.replace("\u0425", "X"))  # once in Cyrillic
    if name is not None:
        return f"[{name[1]}]"
    first = inside.split("|")[0]
    word, _, condition = first.partition(";")
    return word if "=" in condition else ""
