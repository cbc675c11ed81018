"""Arabic: verb, subject, object; the article is part of the word; gender agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.base import Grammar, Position
from isoglot.testbed.languages.nodes import (
    ADJECTIVE,
    COUNT,
    DEFINITE,
    DEGREE,
    HEAD,
    NEGATION,
    PLACE,
    RELATION,
    SUBJECT,
    TENSE,
    VERB,
)
from isoglot.testbed.meaning import Tense
from isoglot.testbed.phrase import Piece

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Parts

NAMES_AS_THEY_ARE = frozenset(
    ["AZN", "TMT", "GHS", "HNL", "NIO", "GTQ", "PYG", "UYU", "MGA", "MWK", "CLP"]
)
"""Currencies named after a country ("the peso of Chile"): definite without an article."""
CORRECTED = {
    "currency:KES": "الشلن الكيني",
    "currency:INR": "الروبية الهندية",
    "currency:NPR": "الروبية النيبالية",
    "currency:PKR": "الروبية الباكستانية",
}
"""Names whose adjective is misspelt or does not agree in CLDR."""


def feminine_verb(present: str) -> str:
    """The feminine of a present form: يـ becomes تـ."""
    return "ت" + present[1:]


class Arabic(Grammar):
    """Realises meanings in Arabic, unvocalised."""

    language = "ar"
    question_mark = "؟"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} دولة/NOUN/0 في/ADP/4 {o}",
        "official": "{o} لغة/NOUN/0 رسمية/ADJ/2 في/ADP/4 {s}",
        "speak": "يتحدث/VERB/0 الناس/NOUN/1 {s:in} اللغة/NOUN/0 {o}",
        "currency": "عملة/NOUN/0 {s} هي/PRON/5 {o}",
        "official?": "ما/PRON/6 اللغة/NOUN/0 الرسمية/ADJ/2 {s:in}",
        "currency?": "ما/PRON/6 عملة/NOUN/0 {s}",
    }

    @override
    def name(self, entity: str, cldr: str) -> str:
        kind, code = entity.split(":")
        if kind != "currency" or code in NAMES_AS_THEY_ARE:
            return cldr
        return CORRECTED.get(entity, " ".join("ال" + word for word in cldr.split()))

    @override
    def spaced(self, before: Piece, piece: Piece) -> bool:
        return piece.upos != "PUNCT" and before.form != "و"

    @override
    def finish(self, text: str) -> str:
        return text.lstrip(" ").replace(" و ", " و")

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        if thing.noun == "who":
            return (Piece(word, "PRON"),)
        if thing.number:
            number = self.lexicon[thing.number].columns[gender == "m"]
            pieces = [Piece(number, "NUM", COUNT), Piece(entry.options["pl"], "NOUN")]
        else:
            pieces = [Piece(entry.options.get("def", "ال" + word), "NOUN", HEAD + DEFINITE)]
        if thing.adjective:
            adjective = self.lexicon[thing.adjective]
            feminine = gender == "f" or bool(thing.number)
            form = adjective.columns[feminine]
            if not thing.number:
                form = "ال" + form if feminine else adjective.options.get("def", "ال" + form)
            pieces.append(Piece(form, "ADJ", ADJECTIVE))
        return tuple(pieces)

    @override
    def make_place(self, place: str) -> tuple[Piece, ...]:
        preposition, noun = super().make_place(place)
        return (preposition, noun._replace(kinds=HEAD + DEFINITE))

    def _make_verb(self, clause: Clause, gender: str) -> tuple[Piece, ...]:
        present, past, past_feminine = self.lexicon[clause.verb].columns
        if gender == "f":
            present, past = feminine_verb(present), past_feminine
        form = past if clause.tense == Tense.PAST else present
        if clause.negated:
            particle = Piece(("لا", "ما", "لن")[clause.tense], "PART", NEGATION)
            return (particle, Piece(form, "VERB", HEAD + TENSE))
        prefix = "س" if clause.tense == Tense.FUTURE else ""
        return (Piece(prefix + form, "VERB", HEAD + TENSE),)

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        gender = self.lexicon[clause.subject.noun].columns[0]
        key = (clause.verb, clause.tense, clause.negated, gender)
        who = (SUBJECT, self.thing(clause.subject))
        does = (VERB, self.kept(key, lambda: self._make_verb(clause, gender)))
        what, where, when = self.adjuncts(clause)
        if position is Position.SUBORDINATE or clause.subject.noun == "who":
            return [who, does, *what, *where, *when]
        if clause.fronted:
            return [*when, does, who, *what, *where]
        return [does, who, *what, *where, *when]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        gender = self.lexicon[quality.subject.noun].columns[0]
        return [
            (SUBJECT, self.thing(quality.subject)),
            (VERB, self.kept((gender, *quality[1:]), lambda: self._make_quality(quality, gender))),
        ]

    def _make_quality(self, quality: Quality, gender: str) -> tuple[Piece, ...]:
        return (
            *[Piece("غير", "PART", NEGATION)] * quality.negated,
            Piece(self.lexicon[quality.adjective].columns[gender == "f"], "ADJ"),
            *[Piece("جدا", "ADV", DEGREE)] * quality.very,
        )

    @override
    def location(self, location: Location, position: Position) -> Parts:
        parts: Parts = [
            (SUBJECT, self.thing(location.subject)),
            (PLACE, self.place(location.place)),
        ]
        if location.negated:
            form = "ليس" if self.lexicon[location.subject.noun].columns[0] == "m" else "ليست"
            be = Piece(form, "AUX", NEGATION + TENSE)
            parts.insert(1, (VERB, self.kept((form,), lambda: (be,))))
        return parts

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        name = self.name_pieces(entity)
        return (Piece("في", "ADP", RELATION), *name) if case == "in" else name
