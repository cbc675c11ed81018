"""English: subject, verb, object; an article before the noun; "do" in negation."""

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
from isoglot.testbed.meaning import Clause, Location, Quality, Tense
from isoglot.testbed.phrase import Piece

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Thing
    from isoglot.testbed.phrase import Parts, Phrase

NOT = Piece("not", "PART", NEGATION)


class English(Grammar):
    """Realises meanings in English."""

    language = "en"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} is/AUX/5 a/DET/1 country/NOUN/0 in/ADP/4 {o}",
        "official": "{o} is/AUX/5 an/DET/1 official/ADJ/2 language/NOUN/0 of/ADP/4 {s}",
        "speak": "people/NOUN/1 in/ADP/4 {s} speak/VERB/0 {o}",
        "currency": "the/DET/1 currency/NOUN/0 of/ADP/4 {s} is/AUX/5 the/DET/7 {o}",
        "official?": "what/PRON/6 is/AUX/5 the/DET/1 official/ADJ/2 language/NOUN/0 of/ADP/4 {s}",
        "currency?": "what/PRON/6 is/AUX/5 the/DET/1 currency/NOUN/0 of/ADP/4 {s}",
    }

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        if thing.noun == "who":
            return (Piece("who", "PRON"),)
        pieces = [Piece(entry.options["pl"] if thing.number else entry.columns[0], "NOUN")]
        if thing.adjective:
            pieces.insert(0, Piece(self.lexicon[thing.adjective].columns[0], "ADJ", ADJECTIVE))
        if thing.number:
            return (Piece(self.lexicon[thing.number].columns[0], "NUM", COUNT), *pieces)
        return (Piece("the", "DET", DEFINITE), *pieces)

    def _verb(self, clause: Clause) -> Phrase:
        key = (clause.verb, clause.tense, clause.negated)
        return self.kept(key, lambda: self._make_verb(clause))

    def _make_verb(self, clause: Clause) -> tuple[Piece, ...]:
        infinitive, present, past = self.lexicon[clause.verb].columns
        if clause.tense != Tense.FUTURE and not clause.negated:
            return (Piece(past if clause.tense else present, "VERB", HEAD + TENSE),)
        auxiliary = Piece(("does", "did", "will")[clause.tense], "AUX", TENSE)
        return (auxiliary, *[NOT] * clause.negated, Piece(infinitive, "VERB"))

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        who, does = (SUBJECT, self.thing(clause.subject)), (VERB, self._verb(clause))
        what, where, when = self.adjuncts(clause)
        if clause.fronted:
            return [*when, who, does, *what, *where]
        if clause.time == "always":
            return [who, *when, does, *what, *where]
        return [who, does, *what, *where, *when]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        return [
            (SUBJECT, self.thing(quality.subject)),
            (VERB, self.kept(quality[1:], lambda: self._make_quality(quality))),
        ]

    def _make_quality(self, quality: Quality) -> tuple[Piece, ...]:
        return (
            Piece("is", "AUX", TENSE),
            *[NOT] * quality.negated,
            *[Piece("very", "ADV", DEGREE)] * quality.very,
            Piece(self.lexicon[quality.adjective].columns[0], "ADJ"),
        )

    @override
    def location(self, location: Location, position: Position) -> Parts:
        negated = location.negated
        be = self.kept(("is", negated), lambda: (Piece("is", "AUX", TENSE), *[NOT] * negated))
        return [
            (SUBJECT, self.thing(location.subject)),
            (VERB, be),
            (PLACE, self.place(location.place)),
        ]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        if case == "in":
            return (Piece("in", "ADP", RELATION), *self.name_pieces(entity))
        return self.name_pieces(entity)
