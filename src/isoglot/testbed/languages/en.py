"""English: subject, verb, object; an article before the noun; "do" in negation."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from isoglot.testbed.languages.base import (
    OBJECT,
    PLACE,
    SUBJECT,
    TIME,
    VERB,
    A,
    C,
    D,
    G,
    Grammar,
    H,
    N,
    Position,
    R,
    T,
)
from isoglot.testbed.meaning import Clause, Location, Quality, Tense, Thing
from isoglot.testbed.phrase import Parts, Phrase, Piece


class English(Grammar):
    """Realises meanings in English."""

    language = "en"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} is/AUX/5 a/DET/1 country/NOUN/0 in/ADP/4 {o}",
        "official": "the/DET/1 official/ADJ/2 language/NOUN/0 of/ADP/4 {s} is/AUX/5 {o}",
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
        adjective = ()
        if thing.adjective:
            adjective = (Piece(self.lexicon[thing.adjective].columns[0], "ADJ", (A,)),)
        if thing.count:
            number = Piece(self.lexicon[thing.count].columns[0], "NUM", (C,))
            return (number, *adjective, Piece(entry.options["pl"], "NOUN"))
        return (Piece("the", "DET", (D,)), *adjective, Piece(entry.columns[0], "NOUN"))

    def verb(self, clause: Clause) -> Phrase:
        """The verb with its auxiliaries; "always" stands among them."""
        always = clause.time == "always"
        key = (clause.verb, clause.tense, clause.negated)
        kept = self._verbs.get(key)
        if kept is None:
            kept = self._verbs[key] = (self.phrase(self._make_verb(*key)),)
        assert not (always and clause.negated)
        return kept[0]

    def _make_verb(self, verb: str, tense: Tense, negated: bool) -> tuple[Piece, ...]:  # noqa: FBT001
        infinitive, present, past = self.lexicon[verb].columns
        if tense != Tense.FUTURE and not negated:
            return (Piece(past if tense else present, "VERB", (H, T)),)
        auxiliary = ("does", "did", "will")[tense]
        negation = (Piece("not", "PART", (N,)),) if negated else ()
        return (Piece(auxiliary, "AUX", (T,)), *negation, Piece(infinitive, "VERB"))

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        parts: Parts = [(SUBJECT, self.thing(clause.subject)), (VERB, self.verb(clause))]
        if clause.object is not None:
            parts.append((OBJECT, self.thing(clause.object)))
        if clause.place:
            parts.append((PLACE, self.place(clause.place)))
        if clause.time:
            where = 0 if clause.fronted else 1 if clause.time == "always" else len(parts)
            parts.insert(where, (TIME, self.time(clause.time)))
        return parts

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        pieces = [Piece("is", "AUX", (T,))]
        if quality.negated:
            pieces.append(Piece("not", "PART", (N,)))
        if quality.very:
            pieces.append(Piece("very", "ADV", (G,)))
        pieces.append(Piece(self.lexicon[quality.adjective].columns[0], "ADJ", (H,)))
        return [(SUBJECT, self.thing(quality.subject)), (VERB, self.phrase(tuple(pieces)))]

    @override
    def location(self, location: Location, position: Position) -> Parts:
        pieces = [Piece("is", "AUX", (T,))]
        if location.negated:
            pieces.append(Piece("not", "PART", (N,)))
        return [
            (SUBJECT, self.thing(location.subject)),
            (VERB, self.phrase(tuple(pieces))),
            (PLACE, self.place(location.place)),
        ]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        if case == "in":
            return (Piece("in", "ADP", (R,)), *self.name_pieces(entity))
        return self.name_pieces(entity)
