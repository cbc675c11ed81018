"""Chinese: subject, time, place, verb, object; measure words; no spaces, no inflection."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.base import Grammar, Position
from isoglot.testbed.languages.nodes import (
    ADJECTIVE,
    COUNT,
    DEGREE,
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

OF = Piece("的", "PART", ADJECTIVE)


class Chinese(Grammar):
    """Realises meanings in Chinese (Mandarin, simplified script)."""

    language = "zh"
    stop = "。"
    question_mark = "？"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} 是/AUX/5 {o} 的/PART/4 一/NUM/1 个/NOUN/1 国家/NOUN/0",
        "official": "{o} 是/AUX/5 {s} 的/PART/4 官方/NOUN/2 语言/NOUN/0",
        "speak": "{s:in} ，/PUNCT/3 人们/NOUN/1 说/VERB/0 {o}",
        "currency": "{s} 的/PART/4 货币/NOUN/0 是/AUX/5 {o}",
        "official?": "{s} 的/PART/4 官方/NOUN/2 语言/NOUN/0 是/AUX/5 什么/PRON/6",
        "currency?": "{s} 的/PART/4 货币/NOUN/0 是/AUX/5 什么/PRON/6",
    }

    @override
    def spaced(self, before: Piece, piece: Piece) -> bool:
        return False

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        if thing.noun == "who":
            return (Piece(entry.columns[0], "PRON"),)
        pieces = []
        if thing.number:
            pieces.append(Piece(self.lexicon[thing.number].columns[0], "NUM", COUNT))
            pieces.append(Piece(entry.options["mw"], "NOUN", COUNT))
        if thing.adjective:
            adjective = self.lexicon[thing.adjective]
            pieces.append(Piece(adjective.columns[0], "ADJ", ADJECTIVE))
            if "de" not in adjective.options:
                pieces.append(OF)
        return (*pieces, Piece(entry.columns[0], "NOUN"))

    def _make_verb(self, clause: Clause) -> tuple[Piece, ...]:
        entry = self.lexicon[clause.verb]
        verb = Piece(entry.columns[0], "VERB")
        if clause.tense == Tense.FUTURE:
            no = [Piece("不", "ADV", NEGATION)] * clause.negated
            return (*no, Piece("会", "AUX", TENSE), verb)
        if clause.negated:
            form = "没有" if clause.tense == Tense.PAST else entry.options.get("neg", "不")
            return (Piece(form, "ADV", NEGATION), verb)
        if clause.tense == Tense.PAST:
            form, _, aspect = entry.options.get("past", "").partition("_")
            return (Piece(form or verb.form, "VERB"), Piece(aspect or "了", "AUX", TENSE))
        return (verb,)

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        key = (clause.verb, clause.tense, clause.negated)
        who = (SUBJECT, self.thing(clause.subject))
        does = self.kept(key, lambda: self._make_verb(clause))
        what, where, when = self.adjuncts(clause)
        verb: Parts = [(VERB, does)]
        if where and (clause.negated or clause.tense == Tense.FUTURE):
            # The negation and 会 stand before the place: 没有在学校里读书.
            *before, last = does.pieces
            first = self.kept(("before", *key), lambda: tuple(before))
            verb = [(VERB, first), *where, (VERB, self.kept((last,), lambda: (last,)))]
            where = []
        if clause.fronted:
            return [*when, who, *where, *verb, *what]
        return [who, *when, *where, *verb, *what]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        return [
            (SUBJECT, self.thing(quality.subject)),
            (VERB, self.kept(quality[1:], lambda: self._make_quality(quality))),
        ]

    def _make_quality(self, quality: Quality) -> tuple[Piece, ...]:
        adjective = Piece(self.lexicon[quality.adjective].columns[0], "ADJ")
        if quality.negated:
            return (Piece("不", "ADV", NEGATION), adjective)
        if quality.very:
            return (Piece("非常", "ADV", DEGREE), adjective)
        return (Piece("很", "ADV", TENSE), adjective)

    @override
    def location(self, location: Location, position: Position) -> Parts:
        parts: Parts = [
            (SUBJECT, self.thing(location.subject)),
            (PLACE, self.place(location.place)),
        ]
        if location.negated:
            no = self.kept(("not",), lambda: (Piece("不", "ADV", NEGATION),))
            parts.insert(1, (VERB, no))
        return parts

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        name = self.name_pieces(entity)
        return (Piece("在", "ADP", RELATION), *name) if case == "in" else name
