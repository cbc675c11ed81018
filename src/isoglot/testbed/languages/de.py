"""German: the finite verb second, participles and infinitives last; gender and case."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import (
    ADJECTIVE,
    CASE,
    COUNT,
    DEFINITE,
    DEGREE,
    HEAD,
    NEGATION,
    PLACE,
    TENSE,
    Tense,
)
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

ARTICLES = {("m", ""): "der", ("m", "acc"): "den", ("f", ""): "die", ("f", "acc"): "die",
            ("n", ""): "das", ("n", "acc"): "das"}  # fmt: skip
WITH_ARTICLE = {
    **dict.fromkeys(["CH", "TR", "UA", "SK", "MN"], "f"),
    **dict.fromkeys(["IR", "IQ", "YE", "LB"], "m"),
}
"""Countries whose name has an article, and its gender."""
IS, NOT = WordForm("ist", "AUX", TENSE), WordForm("nicht", "PART", NEGATION)


class German(Grammar):
    """Realizes meanings in German."""

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
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        adjectives = []
        if thing.adjective:
            ending = "en" if (gender, case) == ("m", "acc") and not thing.number else "e"
            stem = self.lexicon[thing.adjective].columns[1]
            adjectives.append(WordForm(stem + ending, "ADJ", ADJECTIVE))
        if thing.number:
            number = WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT)
            return (number, *adjectives, WordForm(entry.options["pl"], "NOUN"))
        noun = entry.options.get("acc", word) if case == "acc" else word
        article = WordForm(ARTICLES[gender, case], "DET", DEFINITE)
        return (article, *adjectives, WordForm(noun, "NOUN"))

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        """The finite verb, then the participle or infinitive that closes the clause, if any."""
        entry = self.lexicon[clause.verb]
        infinitive, present, participle = entry.columns
        if clause.tense == Tense.PRESENT:
            return (WordForm(present, "VERB", HEAD + TENSE),)
        if clause.tense == Tense.PAST:
            auxiliary = WordForm(entry.options.get("aux", "hat"), "AUX", TENSE)
            return (auxiliary, WordForm(participle, "VERB"))
        return (WordForm("wird", "AUX", TENSE), WordForm(infinitive, "VERB"))

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        does, *last = (self.verb_form(form) for form in self.make_verb(clause, ""))
        who = self.subject(clause.subject)
        what, where, when = self.adjuncts(clause, "acc")
        rest = [*what, *[self.verb_form(NOT)] * clause.negated, *where, *last]
        if position is Position.SUBORDINATE:
            return [who, *when, *rest, does]
        if position is Position.AFTER_ADVERB:
            return [does, who, *when, *rest]
        if clause.fronted:
            return [*when, does, who, *rest]
        return [who, does, *when, *rest]

    @override
    def quality(self, quality: Quality, position: Position) -> Realization:
        rest = [self.verb_form(form) for form in self.make_quality(quality, "")]
        return self._order(quality.subject, rest, position)

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        return (
            *[NOT] * quality.negated,
            *[WordForm("sehr", "ADV", DEGREE)] * quality.very,
            WordForm(self.lexicon[quality.adjective].columns[0], "ADJ"),
        )

    @override
    def location(self, location: Location, position: Position) -> Realization:
        rest = [self.verb_form(form) for form in self.make_copula(location)]
        return self._order(location.subject, [*rest, (PLACE, self.place(location.place))], position)

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (NOT,) * location.negated

    def _order(self, subject: Thing, rest: Realization, position: Position) -> Realization:
        """Subject, "ist" and the rest, in the word order of the clause's position."""
        who, be = self.subject(subject), self.verb_form(IS)
        if position is Position.SUBORDINATE:
            return [who, *rest, be]
        if position is Position.AFTER_ADVERB:
            return [be, who, *rest]
        return [who, be, *rest]

    @override
    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        name = self.name_forms(entity)
        gender = WITH_ARTICLE.get(entity.removeprefix("territory:"))
        if gender is None:
            preposition = {"in": "in", "gen": "von"}.get(case)
            return (WordForm(preposition, "ADP", CASE), *name) if preposition else name
        if case == "in" and gender == "m":
            return (WordForm("im", "ADP", CASE + DEFINITE), *name)
        if case == "in":
            return (WordForm("in", "ADP", CASE), WordForm("der", "DET", DEFINITE), *name)
        articles = {"f": "der", "m": "des"} if case == "gen" else {"f": "die", "m": "der"}
        return (WordForm(articles[gender], "DET", CASE if case else DEFINITE), *name)
