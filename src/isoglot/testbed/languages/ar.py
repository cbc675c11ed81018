"""Arabic: verb, subject, object; the article is part of the word; gender agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, COUNT, DEFINITE, DEGREE, HEAD, NEGATION, TENSE, Tense
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

DEFINITE_CURRENCIES = frozenset(
    ["AZN", "TMT", "GHS", "HNL", "NIO", "GTQ", "PYG", "UYU", "MGA", "MWK", "CLP"]
)
"""Currencies named after a country ("the peso of Chile"): definite without an article."""
CORRECTED = {
    "currency:KES": "الشلن الكيني",
    "currency:INR": "الروبية الهندية",
    "currency:NPR": "الروبية النيبالية",
    "currency:PKR": "الروبية الباكستانية",
}
"""Names whose adjective is misspelled or does not agree in CLDR."""


def feminine_verb(present: str) -> str:
    """The feminine of a present form: يـ becomes تـ."""
    return "ت" + present[1:]


class Arabic(Grammar):
    """Realizes meanings in Arabic, unvocalized."""

    language = "ar"
    question_mark = "؟"
    preposition = "في"
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
        if kind != "currency" or code in DEFINITE_CURRENCIES:
            return cldr
        return CORRECTED.get(entity, " ".join("ال" + word for word in cldr.split()))

    @override
    def spaced(self, before: WordForm, form: WordForm) -> bool:
        return form.upos != "PUNCT" and before.form != "و"

    @override
    def finish(self, text: str) -> str:
        return text.lstrip(" ").replace(" و ", " و")

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        if thing.number:
            number = self.lexicon[thing.number].columns[gender == "m"]
            forms = [WordForm(number, "NUM", COUNT), WordForm(entry.options["pl"], "NOUN")]
        else:
            forms = [WordForm(entry.options.get("def", "ال" + word), "NOUN", HEAD + DEFINITE)]
        if thing.adjective:
            adjective = self.lexicon[thing.adjective]
            feminine = gender == "f" or bool(thing.number)
            form = adjective.columns[feminine]
            if not thing.number:
                form = "ال" + form if feminine else adjective.options.get("def", "ال" + form)
            forms.append(WordForm(form, "ADJ", ADJECTIVE))
        return tuple(forms)

    @override
    def make_place(self, place: str) -> tuple[WordForm, ...]:
        preposition, noun = super().make_place(place)
        return (preposition, noun._replace(kinds=HEAD + DEFINITE))

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        present, past, past_feminine = self.lexicon[clause.verb].columns
        if agreement == "f":
            present, past = feminine_verb(present), past_feminine
        form = past if clause.tense == Tense.PAST else present
        if clause.negated:
            particle = WordForm(("لا", "ما", "لن")[clause.tense], "PART", NEGATION)
            return (particle, WordForm(form, "VERB", HEAD + TENSE))
        prefix = "س" if clause.tense == Tense.FUTURE else ""
        return (WordForm(prefix + form, "VERB", HEAD + TENSE),)

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who = self.subject(clause.subject)
        does = self.verb(clause, self.gender(clause.subject))
        what, where, when = self.adjuncts(clause)
        if position is Position.SUBORDINATE or clause.subject.noun == "who":
            return [who, does, *what, *where, *when]
        if clause.fronted:
            return [*when, does, who, *what, *where]
        return [does, who, *what, *where, *when]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        return (
            *[WordForm("غير", "PART", NEGATION)] * quality.negated,
            WordForm(self.lexicon[quality.adjective].columns[gender == "f"], "ADJ"),
            *[WordForm("جدا", "ADV", DEGREE)] * quality.very,
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        if not location.negated:
            return ()
        form = "ليس" if self.gender(location.subject) == "m" else "ليست"
        return (WordForm(form, "AUX", NEGATION + TENSE),)
