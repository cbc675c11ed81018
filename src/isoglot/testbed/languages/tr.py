"""Turkish: subject, object, verb; endings that follow the vowels; names take an apostrophe."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, CASE, COUNT, DEGREE, HEAD, NEGATION, TENSE
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

VOWELS = {"a": "ı", "ı": "ı", "â": "ı", "e": "i", "i": "i", "o": "u", "u": "u", "ö": "ü", "ü": "ü"}
"""Vowel -> the high vowel that follows it in an ending."""
VOICELESS = "fstkçşhp"
NOT = WordForm("değil", "AUX", NEGATION + TENSE)
SOFT_L = frozenset({"Nepal"})
"""Words whose last "l" wants front vowels after it, whatever comes before."""


def harmony(word: str) -> str:
    """The high vowel of the endings of a word."""
    if word in SOFT_L:
        return "i"
    lowered = word.replace("I", "ı").replace("İ", "i").lower()
    return next(VOWELS[letter] for letter in reversed(lowered) if letter in VOWELS)


def locative_ending(word: str) -> str:
    """-da, -de, -ta or -te."""
    return ("t" if word[-1] in VOICELESS else "d") + ("a" if harmony(word) in "ıu" else "e")


def genitive_ending(word: str) -> str:
    """-nın after a vowel, else -ın, with the right vowel."""
    return ("n" if word[-1] in VOWELS else "") + harmony(word) + "n"


class Turkish(Grammar):
    """Realizes meanings in Turkish."""

    language = "tr"
    has_gender = False
    copula_last = True
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} ,/PUNCT/3 {o:in} bir/DET/1 ülkedir/NOUN/05",
        "official": "{o} ,/PUNCT/3 {s:gen} resmî/ADJ/2 dilidir/NOUN/05",
        "speak": "{s:in} {o} konuşulur/VERB/01",
        "currency": "{s:gen} para/NOUN/0 birimi/NOUN/0 {o}",
        "official?": "{s:gen} resmî/ADJ/2 dili/NOUN/0 nedir/PRON/56",
        "currency?": "{s:gen} para/NOUN/0 birimi/NOUN/0 nedir/PRON/56",
    }

    @override
    def capitalize(self, text: str) -> str:
        return ("İ" if text[0] == "i" else text[0].upper()) + text[1:]

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        form = entry.columns[case == "acc" and not thing.number]
        forms = [WordForm(word, "NOUN") for word in form.split()]
        if thing.adjective:
            forms.insert(0, WordForm(self.lexicon[thing.adjective].columns[0], "ADJ", ADJECTIVE))
        if thing.number:
            forms.insert(0, WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT))
        return tuple(forms)

    @override
    def make_place(self, place: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[place]
        regular = entry.columns[0] + locative_ending(entry.columns[0])
        return (WordForm(entry.options.get("loc", regular), "NOUN", HEAD + CASE),)

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        stem, *forms = self.lexicon[clause.verb].columns
        form, kinds = forms[clause.tense], HEAD + TENSE
        if clause.negated:
            kinds += NEGATION
            vowel = harmony(stem)
            low = "a" if vowel in "ıu" else "e"
            endings = (
                f"m{vowel}yor",
                f"m{low}d{'ı' if low == 'a' else 'i'}",
                f"m{low}y{low}c{low}k",
            )
            form = stem + endings[clause.tense]
        *nouns, verb = form.split()
        return (*(WordForm(noun, "NOUN") for noun in nouns), WordForm(verb, "VERB", kinds))

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who, does = self.subject(clause.subject), self.verb(clause)
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, *where, *what, does]
        return [who, *when, *where, *what, does]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        return (
            *[WordForm("çok", "ADV", DEGREE)] * quality.very,
            WordForm(self.lexicon[quality.adjective].columns[0], "ADJ"),
            *[NOT] * quality.negated,
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (NOT,) * location.negated

    @override
    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        forms = self.name_forms(entity)
        last = forms[-1]
        if case == "in":
            ending = locative_ending(last.form)
        elif case == "gen":
            ending = genitive_ending(last.form)
        else:
            return forms
        return (*forms[:-1], last._replace(form=f"{last.form}'{ending}", kinds=HEAD + CASE))
