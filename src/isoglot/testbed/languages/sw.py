"""Swahili: subject, verb, object; everything agrees with the class of the noun."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, COUNT, DEGREE, HEAD, NEGATION, TENSE
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

PREFIXES = {"1": "m", "3": "m", "4": "mi", "5": "", "6": "ma", "7": "ki", "8": "vi"}
"""Class -> prefix of an adjective; classes 9 and 10 have a form of their own."""
BEFORE_VOWEL = {"m": "mw", "mi": "my", "ma": "m", "ki": "ch", "vi": "vy"}
CONNECTORS = {"1": "wa", "3": "wa", "4": "ya", "5": "la", "6": "ya", "7": "cha", "8": "vya",
              "9": "ya", "10": "za"}  # fmt: skip
PLACED = {"1": "yuko", "3": "uko", "5": "liko", "6": "yako", "7": "kiko", "9": "iko"}
"""Class -> "is there"; with ha- before it, "is not there"."""
PLURALS = {"3": "4", "5": "6", "7": "8", "9": "10"}


class Swahili(Grammar):
    """Realizes meanings in Swahili."""

    language = "sw"
    preposition = "nchini"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} ni/AUX/5 nchi/NOUN/0 ya/ADP/4 {o}",
        "official": "{o} ni/AUX/5 lugha/NOUN/0 rasmi/ADJ/2 ya/ADP/4 {s}",
        "speak": "watu/NOUN/1 {s:in} huzungumza/VERB/0 {o}",
        "currency": "sarafu/NOUN/0 ya/ADP/4 {s} ni/AUX/5 {o}",
        "official?": "lugha/NOUN/0 rasmi/ADJ/2 ya/ADP/4 {s} ni/AUX/5 ipi/PRON/6",
        "currency?": "sarafu/NOUN/0 ya/ADP/4 {s} ni/AUX/5 ipi/PRON/6",
    }

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        noun_class, word = entry.columns
        if thing.number:
            noun_class = entry.options.get("plclass", PLURALS[noun_class])
            word = entry.options["pl"]
        of = CONNECTORS[noun_class]
        forms = [WordForm(part, "ADP" if part == of else "NOUN") for part in word.split()]
        if thing.adjective:
            forms += self._adjective(thing.adjective, noun_class, ADJECTIVE)
        if thing.number:
            number = self.lexicon[thing.number].columns[0]
            if number.startswith("-"):
                number = PREFIXES.get(noun_class, "") + number[1:]
            forms.append(WordForm(number, "NUM", COUNT))
        return tuple(forms)

    def _adjective(self, adjective: str, noun_class: str, kinds: tuple[int, ...]) -> list[WordForm]:
        entry = self.lexicon[adjective]
        word = entry.columns[0]
        if word.startswith("A "):
            connector, *rest = (CONNECTORS[noun_class], *word.split()[1:])
            return [
                WordForm(connector, "ADP", kinds),
                *(WordForm(part, "NOUN", kinds) for part in rest),
            ]
        if word.startswith("-"):
            stem, options = word[1:], entry.options
            if noun_class in ("9", "10"):
                word = options["n"]
            elif noun_class == "5":
                word = options.get("ji", stem)
            else:
                prefix = PREFIXES[noun_class]
                word = (BEFORE_VOWEL[prefix] if stem[0] in "aeiou" else prefix) + stem
        return [WordForm(part, "ADJ", kinds) for part in word.split()]

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[clause.verb]
        kinds = HEAD + TENSE + NEGATION if clause.negated else HEAD + TENSE
        if "forms" in entry.options:
            form = entry.options["forms"].split(",")[clause.tense + 3 * clause.negated]
        elif clause.negated:
            stem = agreement + entry.columns[0]
            present = stem[:-1] + "i" if stem.endswith("a") else stem
            form = ("ha" + present, "haku" + stem, "hata" + stem)[clause.tense]
        else:
            form = ("ana", "ali", "ata")[clause.tense] + agreement + entry.columns[0]
        verb, *nouns = form.split("_")
        return (WordForm(verb, "VERB", kinds), *(WordForm(noun, "NOUN") for noun in nouns))

    def _object_marker(self, clause: Clause) -> str:
        """The prefix that marks an animate object in the verb."""
        thing = clause.object
        if thing is None or not self.is_animate(thing):
            return ""
        return "mw" if self.lexicon[clause.verb].columns[0][0] in "aeiou" else "m"

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who = self.subject(clause.subject)
        does = self.verb(clause, self._object_marker(clause))
        what, where, when = self.adjuncts(clause)
        if clause.fronted:
            return [*when, who, does, *what, *where]
        return [who, does, *what, *where, *when]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        be = (
            WordForm("si", "AUX", TENSE + NEGATION)
            if quality.negated
            else WordForm("ni", "AUX", TENSE)
        )
        very = [WordForm("sana", "ADV", DEGREE)] * quality.very
        return (be, *self._adjective(quality.adjective, gender, HEAD), *very)

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        form = PLACED[self.gender(location.subject)]
        if location.negated:
            return (WordForm("ha" + form, "AUX", TENSE + NEGATION),)
        return (WordForm(form, "AUX", TENSE),)
