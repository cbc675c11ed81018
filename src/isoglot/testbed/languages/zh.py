"""Chinese: subject, time, place, verb, object; measure words; no spaces, no inflection."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, COUNT, DEGREE, NEGATION, TENSE, Tense
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

NOT = WordForm("不", "ADV", NEGATION)
OF = WordForm("的", "PART", ADJECTIVE)


class Chinese(Grammar):
    """Realizes meanings in Chinese (Mandarin, simplified script)."""

    language = "zh"
    stop = "。"
    question_mark = "？"
    has_gender = False
    preposition = "在"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} 是/AUX/5 {o} 的/PART/4 一/NUM/1 个/NOUN/1 国家/NOUN/0",
        "official": "{o} 是/AUX/5 {s} 的/PART/4 官方/NOUN/2 语言/NOUN/0",
        "speak": "{s:in} ，/PUNCT/3 人们/NOUN/1 说/VERB/0 {o}",
        "currency": "{s} 的/PART/4 货币/NOUN/0 是/AUX/5 {o}",
        "official?": "{s} 的/PART/4 官方/NOUN/2 语言/NOUN/0 是/AUX/5 什么/PRON/6",
        "currency?": "{s} 的/PART/4 货币/NOUN/0 是/AUX/5 什么/PRON/6",
    }

    @override
    def spaced(self, before: WordForm, form: WordForm) -> bool:
        return False

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        forms = []
        if thing.number:
            forms.append(WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT))
            forms.append(WordForm(entry.options["mw"], "NOUN", COUNT))
        if thing.adjective:
            adjective = self.lexicon[thing.adjective]
            forms.append(WordForm(adjective.columns[0], "ADJ", ADJECTIVE))
            if "de" not in adjective.options:
                forms.append(OF)
        return (*forms, WordForm(entry.columns[0], "NOUN"))

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[clause.verb]
        verb = WordForm(entry.columns[0], "VERB")
        if clause.tense == Tense.FUTURE:
            return (*[NOT] * clause.negated, WordForm("会", "AUX", TENSE), verb)
        if clause.negated:
            form = "没有" if clause.tense == Tense.PAST else entry.options.get("neg", "不")
            return (WordForm(form, "ADV", NEGATION), verb)
        if clause.tense == Tense.PAST:
            form, _, aspect = entry.options.get("past", "").partition("_")
            return (WordForm(form or verb.form, "VERB"), WordForm(aspect or "了", "AUX", TENSE))
        return (verb,)

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who, does = self.subject(clause.subject), self.verb(clause)
        what, where, when = self.adjuncts(clause)
        verb: Realization = [does]
        if where and (clause.negated or clause.tense == Tense.FUTURE):
            # The negation and 会 stand before the place: 没有在学校里读书.
            *before, last = (self.verb_form(form) for form in does[1].forms)
            verb, where = [*before, *where, last], []
        if clause.fronted:
            return [*when, who, *where, *verb, *what]
        return [who, *when, *where, *verb, *what]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        adjective = WordForm(self.lexicon[quality.adjective].columns[0], "ADJ")
        if quality.negated:
            return (NOT, adjective)
        if quality.very:
            return (WordForm("非常", "ADV", DEGREE), adjective)
        return (WordForm("很", "ADV", TENSE), adjective)

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (NOT,) if location.negated else ()
