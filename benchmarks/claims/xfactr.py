"""Facts of X-FACTR as sentences: names of entities and cloze templates in several languages.

Reads `eval/lama` of the data folder: `xfactr_mtrexf.jsonl` (facts), `xfactr_templates`
("[X] est la capitale [PREPDEF;Y] [Y] ."), `xfactr_aliases` (`Qid TAB name TAB name ...`) and, to
tell usual names from rare ones, `mlama_candidates`. Names stand in templates as they are: X-FACTR's
inflection (cases of Russian and Turkish, articles, gender) is left out, so sentences of these
languages have grammatical errors.
"""

from __future__ import annotations

import json
import lzma
import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from benchmarks.alignment.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

Slot = Literal["subject", "object"]
Spans = dict[Slot, tuple[int, int]]
"""Slot -> first character of its name, character behind the last."""
_SLOTS: dict[str, Slot] = {"X": "subject", "Y": "object"}
_WORDS = {"PREPDEF": "de", "PREPLOC": "à", "PREPDEF-à": "à", "DEF": "el", "ART": "un"}
"""French and Spanish function words that X-FACTR inflects -> the form that is used."""
_OMITTED = ("ARTDEF", "ARTIND")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_SLOT = re.compile(r"([XY])(?:\.\w+)?")
_ENGLISH_TEMPLATES = "TREx-relations"
_LATIN = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        "a b v g d e e zh z i i k l m n o p r s t u f kh ts ch sh shch _ y _ e iu ia".replace(
            "_", ""
        ).split(" "),
        strict=True,
    )
)
"""Cyrillic letter -> Latin ones."""
LEFT_OUT = ("P1923",)
"""The Spanish template of P1923 has subject and object swapped."""


def template_file(data: Path, language: str) -> Path:
    """The file of a language's templates."""
    name = _ENGLISH_TEMPLATES if language == "en" else f"relations.{language}"
    return data / "eval" / "lama" / "xfactr_templates" / f"{name}.jsonl.xz"


def alias_file(data: Path, language: str) -> Path:
    """The file of a language's names."""
    return data / "eval" / "lama" / "xfactr_aliases" / f"{language}.tsv.xz"


def read_lines(file: Path) -> Iterator[str]:
    """The lines of an .xz file without their ends."""
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield line.rstrip("\n")


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with a place for the subject's and one for the object's name."""

    before: str
    first: Slot
    between: str
    second: Slot
    after: str

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read X-FACTR's notation; of alternatives the first is taken."""
        pieces, slots = [""], list[Slot]()
        for place, piece in enumerate(_BRACKETS.split(text)):
            head = piece.split("|")[0].split(";")[0]
            if place % 2 == 0:
                pieces[-1] += piece
            elif found := _SLOT.fullmatch(head):
                slots.append(_SLOTS[found[1]])
                pieces.append("")
            elif head not in _OMITTED:
                pieces[-1] += _WORDS.get(head, head)
        assert sorted(slots) == ["object", "subject"], f"{text}: not one place for each name"
        before, between, after = (re.sub(r"\s+", " ", piece) for piece in pieces)
        after = f"{after.rstrip(' .')}."
        return cls(before.lstrip(), slots[0], between, slots[1], after)

    def fill(self, subject: str, object_: str) -> tuple[str, Spans]:
        """The sentence, and where the names are in it."""
        names = {"subject": subject, "object": object_}
        first, second = names[self.first], names[self.second]
        start = len(self.before)
        middle = start + len(first) + len(self.between)
        text = f"{self.before}{first}{self.between}{second}{self.after}"
        return text, {
            self.first: (start, start + len(first)),
            self.second: (middle, middle + len(second)),
        }


def read_templates(data: Path, language: str) -> dict[str, Template]:
    """Relation -> its template in a language."""
    rows = map(json.loads, read_lines(template_file(data, language)))
    found = {row["relation"]: row["template"] for row in rows}
    return {name: Template.parse(text) for name, text in found.items() if name not in LEFT_OUT}


def read_names(data: Path, language: str, labels: dict[str, str]) -> dict[str, str]:
    """Entity -> its usual name in a language; `labels` are English names of the entities."""
    usual = _listed_names(data, language)
    found = {}
    for line in read_lines(alias_file(data, language)):
        entity, *names = line.split("\t")
        if entity in labels and names:
            label = labels[entity]
            found[entity] = label if language == "en" else usual_name(names, label, usual, language)
    return found


def usual_name(names: Collection[str], label: str, listed: Collection[str], language: str) -> str:
    """The usual one of several names, which the files have in the order of the alphabet.

    Names in the language's script come first, then those that mLAMA lists, then those that are
    spelled most like the English label.
    """
    if len(names) == 1:
        return next(iter(names))
    good = [name for name in names if "," not in name and any(map(str.isalpha, name))] or names
    return max(
        good,
        key=lambda name: (
            _is_cyrillic(name) == (language == "ru"),
            name in listed,
            _likeness(romanised(name), romanised(label)),
            name,
        ),
    )


def romanised(name: str) -> str:
    """A name in small Latin letters without accents."""
    small = "".join(_LATIN.get(letter, letter) for letter in name.lower())
    return "".join(
        letter
        for letter in unicodedata.normalize("NFKD", small)
        if not unicodedata.combining(letter)
    )


def _is_cyrillic(name: str) -> bool:
    return any(letter in _LATIN for letter in name.lower())


@cache
def _likeness(name: str, label: str) -> float:
    return SequenceMatcher(None, name, label, autojunk=False).ratio()


def _listed_names(data: Path, language: str) -> set[str]:
    """All names that mLAMA lists in a language; none where it has no such language."""
    file = data / "eval" / "lama" / "mlama_candidates" / f"{language}.json.xz"
    if not file.is_file():
        return set()
    said = json.loads("\n".join(read_lines(file)))
    return {name for relation in said.values() for part in relation.values() for name in part}


class Fact(NamedTuple):
    """Subject, relation and object, by Wikidata's ids."""

    subject: str
    relation: str
    object: str

    @property
    def pair(self) -> tuple[str, str]:
        """Its two entities in one order."""
        first, second = sorted((self.subject, self.object))
        return first, second


@dataclass(frozen=True, slots=True)
class World:
    """The facts that are kept, and how they are told."""

    facts: tuple[Fact, ...]
    names: dict[str, dict[str, str]]
    """Language -> entity -> its name."""
    templates: dict[str, dict[str, Template]]
    """Language -> relation -> template."""

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages; every entity has a name in each."""
        return tuple(self.names)

    def tell(self, fact: Fact, language: str) -> str:
        """A fact as a sentence."""
        names = self.names[language]
        filled = self.templates[language][fact.relation].fill(
            names[fact.subject], names[fact.object]
        )
        return filled[0]


def read_world(data: Path) -> World:
    """Facts whose entities have names in all languages of the study that have templates, too."""
    codes = sorted(one.code for one in LANGUAGES)
    languages = [
        code
        for code in codes
        if template_file(data, code).is_file() and alias_file(data, code).is_file()
    ]
    rows = list(map(json.loads, read_lines(data / "eval" / "lama" / "xfactr_mtrexf.jsonl.xz")))
    labels: dict[str, str] = {}
    for row in rows:
        labels.setdefault(row["sub_uri"], row["sub_label"])
        labels.setdefault(row["obj_uri"], row["obj_label"])
    names = {code: read_names(data, code, labels) for code in languages}
    templates = {code: read_templates(data, code) for code in languages}
    named = set.intersection(*map(set, names.values()))
    told = set.intersection(*map(set, templates.values()))
    found = dict.fromkeys(
        Fact(row["sub_uri"], row["predicate_id"], row["obj_uri"])
        for row in rows
        if row["predicate_id"] in told and {row["sub_uri"], row["obj_uri"]} <= named
    )
    facts = tuple(fact for fact in found if fact.subject != fact.object)
    return World(facts, names, templates)
