"""German: the finite verb second, participles and infinitives last; gender and case."""

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
    from isoglot.testbed.phrase import Parts, Phrase

ARTICLES = {("m", ""): "der", ("m", "acc"): "den", ("f", ""): "die", ("f", "acc"): "die",
            ("n", ""): "das", ("n", "acc"): "das"}  # fmt: skip
WITH_ARTICLE = {
    **dict.fromkeys(["CH", "TR", "UA", "SK", "MN"], "f"),
    **dict.fromkeys(["IR", "IQ", "YE", "LB"], "m"),
}
"""Countries whose name has an article, and its gender."""
NOT = Piece("nicht", "PART", NEGATION)


class German(Grammar):
    """Realises meanings in German."""

    language = "de"
    articles_within = frozenset({"im", "am"})
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} ist/AUX/5 ein/DET/1 Land/NOUN/0 in/ADP/4 {o}",
        "official": "{o} ist/AUX/5 eine/DET/1 Amtssprache/NOUN/02 {s:gen}",
        "speak": "{s:in} spricht/VERB/0 man/PRON/1 {o}",
        "currency": "die/DET/1 Währung/NOUN/0 {s:gen} heißt/VERB/5 {o}",
        "official?": "was/PRON/6 ist/AUX/5 die/DET/1 Amtssprache/NOUN/02 {s:gen}",
        "currency?": "wie/ADV/6 heißt/VERB/5 die/DET/1 Währung/NOUN/0 {s:gen}",
    }

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        if thing.noun == "who":
            return (Piece(word, "PRON"),)
        adjectives = []
        if thing.adjective:
            ending = "en" if (gender, case) == ("m", "acc") and not thing.number else "e"
            stem = self.lexicon[thing.adjective].columns[1]
            adjectives.append(Piece(stem + ending, "ADJ", ADJECTIVE))
        if thing.number:
            number = Piece(self.lexicon[thing.number].columns[0], "NUM", COUNT)
            return (number, *adjectives, Piece(entry.options["pl"], "NOUN"))
        noun = entry.options.get("acc", word) if case == "acc" else word
        article = Piece(ARTICLES[gender, case], "DET", DEFINITE)
        return (article, *adjectives, Piece(noun, "NOUN"))

    def _verb(self, clause: Clause) -> tuple[Phrase, Parts]:
        """The finite verb, and the participle or infinitive that closes the clause, if any."""
        key = (clause.verb, clause.tense)
        entry = self.lexicon[clause.verb]
        infinitive, present, participle = entry.columns
        if clause.tense == Tense.PRESENT:
            return self.kept(key, lambda: (Piece(present, "VERB", HEAD + TENSE),)), []
        past = clause.tense == Tense.PAST
        auxiliary = entry.options.get("aux", "hat") if past else "wird"
        last = self.kept(key, lambda: (Piece(participle if past else infinitive, "VERB"),))
        return self.kept((auxiliary,), lambda: (Piece(auxiliary, "AUX", TENSE),)), [(VERB, last)]

    @override
    def clause(self, clause: Clause, position: Position) -> Parts:
        finite, last = self._verb(clause)
        who, does = (SUBJECT, self.thing(clause.subject)), (VERB, finite)
        what, where, when = self.adjuncts(clause, "acc")
        negation: Parts = [(VERB, self.kept(("not",), lambda: (NOT,)))] if clause.negated else []
        rest = [*what, *negation, *where, *last]
        if position is Position.SUBORDINATE:
            return [who, *when, *rest, does]
        if position is Position.AFTER_ADVERB:
            return [does, who, *when, *rest]
        if clause.fronted:
            return [*when, does, who, *rest]
        return [who, does, *when, *rest]

    @override
    def quality(self, quality: Quality, position: Position) -> Parts:
        said = self.kept(quality[1:], lambda: self._make_quality(quality))
        return self._order(self.thing(quality.subject), [(VERB, said)], position)

    def _make_quality(self, quality: Quality) -> tuple[Piece, ...]:
        return (
            *[NOT] * quality.negated,
            *[Piece("sehr", "ADV", DEGREE)] * quality.very,
            Piece(self.lexicon[quality.adjective].columns[0], "ADJ"),
        )

    @override
    def location(self, location: Location, position: Position) -> Parts:
        rest: Parts = [(PLACE, self.place(location.place))]
        if location.negated:
            rest.insert(0, (VERB, self.kept(("not",), lambda: (NOT,))))
        return self._order(self.thing(location.subject), rest, position)

    def _order(self, subject: Phrase, rest: Parts, position: Position) -> Parts:
        """Subject, "ist" and the rest, as the position of the clause wants them."""
        who = (SUBJECT, subject)
        be = (VERB, self.kept(("ist",), lambda: (Piece("ist", "AUX", TENSE),)))
        if position is Position.SUBORDINATE:
            return [who, *rest, be]
        if position is Position.AFTER_ADVERB:
            return [be, who, *rest]
        return [who, be, *rest]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        name = self.name_pieces(entity)
        gender = WITH_ARTICLE.get(entity.removeprefix("territory:"))
        if gender is None:
            preposition = {"in": "in", "gen": "von"}.get(case)
            return (Piece(preposition, "ADP", RELATION), *name) if preposition else name
        if case == "in" and gender == "m":
            return (Piece("im", "ADP", RELATION + DEFINITE), *name)
        if case == "in":
            return (Piece("in", "ADP", RELATION), Piece("der", "DET", DEFINITE), *name)
        articles = {"f": "der", "m": "des"} if case == "gen" else {"f": "die", "m": "der"}
        return (Piece(articles[gender], "DET", RELATION if case else DEFINITE), *name)
