"""Hindi: subject, object, verb; postpositions, the oblique, and ने with object agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, CASE, COUNT, DEGREE, HEAD, NEGATION, TENSE, Tense
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

NOT = WordForm("नहीं", "PART", NEGATION)
GENDERS = "mfMF"
"""Masculine, feminine; in capitals honorific or plural, with plural agreement."""


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
    """Realizes meanings in Hindi."""

    language = "hi"
    stop = "।"
    copula_last = True
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} {o} का/ADP/4 एक/DET/1 देश/NOUN/0 है/AUX/5",
        "official": "{o} {s} की/ADP/4 आधिकारिक/ADJ/2 भाषा/NOUN/0 है/AUX/5",
        "speak": "{s:in} {o} बोली/VERB/0 जाती/AUX/01 है/AUX/0",
        "currency": "{s} की/ADP/4 मुद्रा/NOUN/0 {o} है/AUX/5",
        "official?": "{s} की/ADP/4 आधिकारिक/ADJ/2 भाषा/NOUN/0 क्या/PRON/6 है/AUX/5",
        "currency?": "{s} की/ADP/4 मुद्रा/NOUN/0 क्या/PRON/6 है/AUX/5",
    }

    @override
    def make_who(self, case: str) -> tuple[WordForm, ...]:
        return (WordForm("किसने", "PRON"),) if case == "ne" else super().make_who(case)

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        marker = "ने" if case == "ne" else ""
        if case == "acc" and self.is_animate(thing):
            marker = "को"
        oblique = bool(marker)
        forms = []
        if thing.number:
            forms.append(WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT))
        if thing.adjective:
            plural = bool(thing.number) or oblique or gender == "M"
            form = self._adjective(thing.adjective, gender, plural=plural)
            forms.append(WordForm(form, "ADJ", ADJECTIVE))
        if thing.number:
            word = entry.options["pl"]
        elif oblique:
            word = entry.options.get("obl", word)
        forms += [WordForm(part, "NOUN") for part in word.split()]
        if marker:
            forms.append(WordForm(marker, "ADP", CASE))
        return tuple(forms)

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

    def _agreement(self, clause: Clause) -> str:
        """The gender that the verb agrees with: the subject's, the object's, or masculine."""
        if not self._marked(clause):
            return self.gender(clause.subject)
        thing = clause.object
        if thing is None or self.is_animate(thing):
            return "m"
        return GENDERS[GENDERS.index(self.gender(thing)) + 2 * bool(thing.number)]

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        number = GENDERS.index(agreement)
        entry = self.lexicon[clause.verb]
        stem = entry.columns[0]
        negation = [NOT] * clause.negated
        be: list[WordForm] = []
        if clause.tense == Tense.PRESENT:
            form = stem + ("ता", "ती", "ते", "ती")[number]
            if clause.negated and number == 3:
                form = stem + "तीं"  # the plural shows here, for want of हैं
            elif not clause.negated:
                be = [WordForm("है" if number < 2 else "हैं", "AUX", TENSE)]
        elif clause.tense == Tense.PAST:
            listed = entry.options.get("past")
            past = listed.replace("_", " ").split(",") if listed else perfective(stem)
            form = past[number]
        else:
            stems = future(stem, entry.options.get("fut"))
            form = stems[number > 1].replace("_", " ") + ("गा", "गी", "गे", "गी")[number]
        *nouns, verb = form.split()
        kinds = HEAD if be else HEAD + TENSE
        before = [WordForm(noun, "NOUN") for noun in nouns]
        return (*before, *negation, WordForm(verb, "VERB", kinds), *be)

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who = self.subject(clause.subject, "ne" if self._marked(clause) else "")
        does = self.verb(clause, self._agreement(clause))
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, *where, *what, does]
        return [who, *when, *where, *what, does]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        return (
            *[WordForm("बहुत", "ADV", DEGREE)] * quality.very,
            WordForm(self._adjective(quality.adjective, gender, plural=gender == "M"), "ADJ"),
            *[NOT] * quality.negated,
            WordForm("हैं" if gender in "MF" else "है", "AUX", TENSE),
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        form = "हैं" if self.gender(location.subject) in "MF" else "है"
        return (*[NOT] * location.negated, WordForm(form, "AUX", TENSE))

    @override
    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        name = self.name_forms(entity)
        return (*name, WordForm("में", "ADP", CASE)) if case == "in" else name
