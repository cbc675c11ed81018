"""Hindi: subject, object, verb; postpositions, the oblique, and ने with object agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.base import Grammar, Position
from isoglot.testbed.languages.nodes import (
    ADJECTIVE,
    COUNT,
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

NOT = Piece("नहीं", "PART", NEGATION)
AGREEMENT = "mfMF"
"""Genders: masculine, feminine; in capitals honoured, with plural agreement."""


def future(stem: str, option: str | None) -> tuple[str, str]:
    """The future stem, singular and plural."""
    if option is None:
        option = stem + ("ए" if stem[-1] in "ाो" else "े")
    return option, option + ("ँ" if option.endswith("ए") else "ं")


def perfective(stem: str) -> tuple[str, ...]:
    """The past of a regular verb: masculine, feminine, masculine plural, feminine plural."""
    endings = ("या", "ई", "ए", "ईं") if stem[-1] in "ाो" else ("ा", "ी", "े", "ीं")
    return tuple(stem + ending for ending in endings)


class Hindi(Grammar):
    """Realises meanings in Hindi."""

    language = "hi"
    stop = "।"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} {o} का/ADP/4 एक/DET/1 देश/NOUN/0 है/AUX/5",
        "official": "{o} {s} की/ADP/4 आधिकारिक/ADJ/2 भाषा/NOUN/0 है/AUX/5",
        "speak": "{s:in} {o} बोली/VERB/0 जाती/AUX/01 है/AUX/0",
        "currency": "{s} की/ADP/4 मुद्रा/NOUN/0 {o} है/AUX/5",
        "official?": "{s} की/ADP/4 आधिकारिक/ADJ/2 भाषा/NOUN/0 क्या/PRON/6 है/AUX/5",
        "currency?": "{s} की/ADP/4 मुद्रा/NOUN/0 क्या/PRON/6 है/AUX/5",
    }

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        if thing.noun == "who":
            return (Piece("किसने" if case == "ne" else word, "PRON"),)
        marker = "ने" if case == "ne" else ""
        if case == "acc" and entry.category in ("person", "animal"):
            marker = "को"
        oblique = bool(marker)
        pieces = []
        if thing.number:
            pieces.append(Piece(self.lexicon[thing.number].columns[0], "NUM", COUNT))
        if thing.adjective:
            plural = bool(thing.number) or oblique or gender == "M"
            form = self._adjective(thing.adjective, gender, plural=plural)
            pieces.append(Piece(form, "ADJ", ADJECTIVE))
        if thing.number:
            word = entry.options["pl"]
        elif oblique:
            word = entry.options.get("obl", word)
        pieces += [Piece(part, "NOUN") for part in word.split()]
        if marker:
            pieces.append(Piece(marker, "ADP", RELATION))
        return tuple(pieces)

    def _adjective(self, adjective: str, gender: str, *, plural: bool) -> str:
        """An adjective; `plural` stands for the oblique, too, which looks the same."""
        entry = self.lexicon[adjective]
        word = entry.columns[0]
        if not word.endswith("ा"):
            return word
        if gender in "fF":
            return entry.options.get("f", word[:-1] + "ी")
        return entry.options.get("pl", word[:-1] + "े") if plural else word

    def _marked(self, clause: Clause) -> bool:
        """Whether the subject takes ने."""
        entry = self.lexicon[clause.verb]
        transitive = clause.object is not None or "ne" in entry.options
        return clause.tense == Tense.PAST and transitive

    def _agreement(self, clause: Clause) -> int:
        """Index into `AGREEMENT` of what the verb agrees with: subject, object, or nothing."""
        if not self._marked(clause):
            return AGREEMENT.index(self.lexicon[clause.subject.noun].columns[0])
        thing = clause.object
        if thing is None or self.lexicon[thing.noun].category in ("person", "animal"):
            return 0
        return AGREEMENT.index(self.lexicon[thing.noun].columns[0]) + 2 * bool(thing.number)

    def _make_verb(self, clause: Clause, agreement: int) -> tuple[Piece, ...]:
        entry = self.lexicon[clause.verb]
        stem = entry.columns[0]
        negation = [NOT] * clause.negated
        be: list[Piece] = []
        if clause.tense == Tense.PRESENT:
            form = stem + ("ता", "ती", "ते", "ती")[agreement]
            if clause.negated and agreement == 3:
                form = stem + "तीं"  # the plural shows here, for want of हैं
            elif not clause.negated:
                be = [Piece("है" if agreement < 2 else "हैं", "AUX", TENSE)]
        elif clause.tense == Tense.PAST:
            listed = entry.options.get("past")
            forms = listed.replace("_", " ").split(",") if listed else perfective(stem)
            form = forms[agreement]
        else:
            stems = future(stem, entry.options.get("fut"))
            form = stems[agreement > 1].replace("_", " ") + ("गा", "गी", "गे", "गी")[agreement]
        *nouns, verb = form.split()
        kinds = HEAD if be else HEAD + TENSE
        before = [Piece(noun, "NOUN") for noun in nouns]
        return (*before, *negation, Piece(verb, "VERB", kinds), *be)

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        agreement = self._agreement(clause)
        key = (clause.verb, clause.tense, clause.negated, agreement)
        who = (SUBJECT, self.thing(clause.subject, "ne" if self._marked(clause) else ""))
        does = (VERB, self.kept(key, lambda: self._make_verb(clause, agreement)))
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, *where, *what, does]
        return [who, *when, *where, *what, does]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        gender = self.lexicon[quality.subject.noun].columns[0]
        return [
            (SUBJECT, self.thing(quality.subject)),
            (VERB, self.kept((gender, *quality[1:]), lambda: self._make_quality(quality, gender))),
        ]

    def _make_quality(self, quality: Quality, gender: str) -> tuple[Piece, ...]:
        return (
            *[Piece("बहुत", "ADV", DEGREE)] * quality.very,
            Piece(self._adjective(quality.adjective, gender, plural=gender == "M"), "ADJ"),
            *[NOT] * quality.negated,
            Piece("हैं" if gender in "MF" else "है", "AUX", TENSE),
        )

    @override
    def location(self, location: Location, position: Position) -> Parts:
        honoured = self.lexicon[location.subject.noun].columns[0] in "MF"
        be = Piece("हैं" if honoured else "है", "AUX", TENSE)
        key = ("be", location.negated, honoured)
        return [
            (SUBJECT, self.thing(location.subject)),
            (PLACE, self.place(location.place)),
            (VERB, self.kept(key, lambda: (*[NOT] * location.negated, be))),
        ]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        name = self.name_pieces(entity)
        return (*name, Piece("में", "ADP", RELATION)) if case == "in" else name
