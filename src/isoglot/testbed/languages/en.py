"""English: subject, verb, object; an article before the noun; "do" in negation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, COUNT, DEFINITE, DEGREE, HEAD, NEGATION, TENSE, Tense
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

NOT = WordForm("not", "PART", NEGATION)


class English(Grammar):
    """Realizes meanings in English."""

    language = "en"
    has_gender = False
    preposition = "in"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} is/AUX/5 a/DET/1 country/NOUN/0 in/ADP/4 {o}",
        "official": "{o} is/AUX/5 an/DET/1 official/ADJ/2 language/NOUN/0 of/ADP/4 {s}",
        "speak": "people/NOUN/1 in/ADP/4 {s} speak/VERB/0 {o}",
        "currency": "the/DET/1 currency/NOUN/0 of/ADP/4 {s} is/AUX/5 the/DET/7 {o}",
        "official?": "what/PRON/6 is/AUX/5 the/DET/1 official/ADJ/2 language/NOUN/0 of/ADP/4 {s}",
        "currency?": "what/PRON/6 is/AUX/5 the/DET/1 currency/NOUN/0 of/ADP/4 {s}",
    }

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        forms = [WordForm(entry.options["pl"] if thing.number else entry.columns[0], "NOUN")]
        if thing.adjective:
            forms.insert(0, WordForm(self.lexicon[thing.adjective].columns[0], "ADJ", ADJECTIVE))
        if thing.number:
            return (WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT), *forms)
        return (WordForm("the", "DET", DEFINITE), *forms)

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        infinitive, present, past = self.lexicon[clause.verb].columns
        if clause.tense != Tense.FUTURE and not clause.negated:
            return (WordForm(past if clause.tense else present, "VERB", HEAD + TENSE),)
        auxiliary = WordForm(("does", "did", "will")[clause.tense], "AUX", TENSE)
        return (auxiliary, *[NOT] * clause.negated, WordForm(infinitive, "VERB"))

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who, does = self.subject(clause.subject), self.verb(clause)
        what, where, when = self.adjuncts(clause)
        if clause.fronted:
            return [*when, who, does, *what, *where]
        if clause.time == "always":
            return [who, *when, does, *what, *where]
        return [who, does, *what, *where, *when]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        return (
            WordForm("is", "AUX", TENSE),
            *[NOT] * quality.negated,
            *[WordForm("very", "ADV", DEGREE)] * quality.very,
            WordForm(self.lexicon[quality.adjective].columns[0], "ADJ"),
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (WordForm("is", "AUX", TENSE), *[NOT] * location.negated)
