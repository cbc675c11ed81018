"""Spanish: subject, verb, object; adjectives after the noun; "a" before living objects."""

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
from isoglot.testbed.phrase import Piece

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Parts

FEMININE_CURRENCIES = frozenset(["lira", "rupia", "libra", "corona", "leva", "grivna"])
NOT = Piece("no", "PART", NEGATION)


class Spanish(Grammar):
    """Realises meanings in Spanish."""

    language = "es"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} es/AUX/5 un/DET/1 país/NOUN/0 de/ADP/4 {o}",
        "official": "{o:the} es/AUX/5 un/DET/1 idioma/NOUN/0 oficial/ADJ/2 de/ADP/4 {s}",
        "speak": "{s:in} se/PRON/1 habla/VERB/0 {o}",
        "currency": "la/DET/1 moneda/NOUN/0 de/ADP/4 {s} es/AUX/5 {o:the}",
        "official?": "¿/PUNCT/3 cuál/PRON/6 es/AUX/5 el/DET/1 idioma/NOUN/0 oficial/ADJ/2"
        " de/ADP/4 {s}",
        "currency?": "¿/PUNCT/3 cuál/PRON/6 es/AUX/5 la/DET/1 moneda/NOUN/0 de/ADP/4 {s}",
    }

    @override
    def spaced(self, before: Piece, piece: Piece) -> bool:
        return before.form != "¿" and (piece.upos != "PUNCT" or piece.form == "¿")

    @override
    def finish(self, text: str) -> str:
        return super().finish(text.replace("¿ ", "¿"))

    @override
    def capitalise(self, text: str) -> str:
        if text.startswith("¿"):
            return text[:1] + text[1:2].upper() + text[2:]
        return super().capitalise(text)

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        if thing.noun == "who":
            return (Piece("¿", "PUNCT", COUNT), Piece(word, "PRON"))
        adjectives = []
        if thing.adjective:
            form = self._adjective(thing.adjective, gender, plural=bool(thing.number))
            adjectives.append(Piece(form, "ADJ", ADJECTIVE))
        if thing.number:
            number = Piece(self.lexicon[thing.number].columns[0], "NUM", COUNT)
            return (number, Piece(entry.options["pl"], "NOUN"), *adjectives)
        article = entry.options.get("art", "el" if gender == "m" else "la")
        before = [Piece(article, "DET", DEFINITE)]
        if case == "acc" and entry.category in ("person", "animal"):
            if article == "el":
                before = [Piece("al", "ADP", RELATION + DEFINITE)]
            else:
                before.insert(0, Piece("a", "ADP", RELATION))
        return (*before, Piece(word, "NOUN"), *adjectives)

    def _adjective(self, adjective: str, gender: str, *, plural: bool) -> str:
        entry = self.lexicon[adjective]
        form = entry.columns[gender == "f"]
        return entry.options.get("pl", form + "s") if plural else form

    def _make_verb(self, clause: Clause) -> tuple[Piece, ...]:
        form = self.lexicon[clause.verb].columns[1 + clause.tense]
        return (*[NOT] * clause.negated, Piece(form, "VERB", HEAD + TENSE))

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        key = (clause.verb, clause.tense, clause.negated)
        who = (SUBJECT, self.thing(clause.subject))
        does = (VERB, self.kept(key, lambda: self._make_verb(clause)))
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, does, *what, *where]
        if clause.time == "always":
            return [who, *when, does, *what, *where]
        return [who, does, *what, *where, *when]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        gender = self.lexicon[quality.subject.noun].columns[0]
        return [
            (SUBJECT, self.thing(quality.subject)),
            (VERB, self.kept((gender, *quality[1:]), lambda: self._make_quality(quality, gender))),
        ]

    def _make_quality(self, quality: Quality, gender: str) -> tuple[Piece, ...]:
        be = self.lexicon[quality.adjective].options.get("be", "es")
        return (
            *[NOT] * quality.negated,
            Piece(be, "AUX", TENSE),
            *[Piece("muy", "ADV", DEGREE)] * quality.very,
            Piece(self._adjective(quality.adjective, gender, plural=False), "ADJ"),
        )

    @override
    def location(self, location: Location, position: Position) -> Parts:
        negated = location.negated
        be = self.kept(("be", negated), lambda: (*[NOT] * negated, Piece("está", "AUX", TENSE)))
        return [
            (SUBJECT, self.thing(location.subject)),
            (VERB, be),
            (PLACE, self.place(location.place)),
        ]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        name = self.name_pieces(entity)
        if case == "in":
            return (Piece("en", "ADP", RELATION), *name)
        if case == "the":
            article = "la" if name[0].form in FEMININE_CURRENCIES else "el"
            return (Piece(article, "DET", DEFINITE), *name)
        return name
