"""Spanish: subject, verb, object; adjectives after the noun; "a" before living objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, CASE, COUNT, DEFINITE, DEGREE, HEAD, NEGATION, TENSE
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

FEMININE_CURRENCIES = frozenset(["lira", "rupia", "libra", "corona", "leva", "grivna"])
NOT = WordForm("no", "PART", NEGATION)


class Spanish(Grammar):
    """Realizes meanings in Spanish."""

    language = "es"
    preposition = "en"
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
    def spaced(self, before: WordForm, form: WordForm) -> bool:
        return before.form != "¿" and (form.upos != "PUNCT" or form.form == "¿")

    @override
    def finish(self, text: str) -> str:
        return super().finish(text.replace("¿ ", "¿"))

    @override
    def capitalize(self, text: str) -> str:
        if text.startswith("¿"):
            return text[:1] + text[1:2].upper() + text[2:]
        return super().capitalize(text)

    @override
    def make_who(self, case: str) -> tuple[WordForm, ...]:
        return (WordForm("¿", "PUNCT", COUNT), *super().make_who(case))

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        adjectives = []
        if thing.adjective:
            form = self._adjective(thing.adjective, gender, plural=bool(thing.number))
            adjectives.append(WordForm(form, "ADJ", ADJECTIVE))
        if thing.number:
            number = WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT)
            return (number, WordForm(entry.options["pl"], "NOUN"), *adjectives)
        article = entry.options.get("art", "el" if gender == "m" else "la")
        before = [WordForm(article, "DET", DEFINITE)]
        if case == "acc" and self.is_animate(thing):
            if article == "el":
                before = [WordForm("al", "ADP", CASE + DEFINITE)]
            else:
                before.insert(0, WordForm("a", "ADP", CASE))
        return (*before, WordForm(word, "NOUN"), *adjectives)

    def _adjective(self, adjective: str, gender: str, *, plural: bool) -> str:
        entry = self.lexicon[adjective]
        form = entry.columns[gender == "f"]
        return entry.options.get("pl", form + "s") if plural else form

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        form = self.lexicon[clause.verb].columns[1 + clause.tense]
        return (*[NOT] * clause.negated, WordForm(form, "VERB", HEAD + TENSE))

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who, does = self.subject(clause.subject), self.verb(clause)
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, does, *what, *where]
        if clause.time == "always":
            return [who, *when, does, *what, *where]
        return [who, does, *what, *where, *when]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        be = self.lexicon[quality.adjective].options.get("be", "es")
        return (
            *[NOT] * quality.negated,
            WordForm(be, "AUX", TENSE),
            *[WordForm("muy", "ADV", DEGREE)] * quality.very,
            WordForm(self._adjective(quality.adjective, gender, plural=False), "ADJ"),
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (*[NOT] * location.negated, WordForm("está", "AUX", TENSE))

    @override
    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        if case == "the":
            name = self.name_forms(entity)
            article = "la" if name[0].form in FEMININE_CURRENCIES else "el"
            return (WordForm(article, "DET", DEFINITE), *name)
        return super().make_entity(entity, case)
