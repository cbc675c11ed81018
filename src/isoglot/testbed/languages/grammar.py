"""What all grammars share: cached phrases, and sentences put together from them.

A grammar turns a meaning into phrases, each with the slot it expresses. A language's file gives
its noun phrases, verb forms and entity names and the word order of a clause; this file joins
clauses, fills the templates of facts, and spaces and capitalizes the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from isoglot.testbed.entities import cldr_names
from isoglot.testbed.lexicon import read_lexicon
from isoglot.testbed.meaning import (
    ADJECTIVE,
    CASE,
    CONNECTIVE,
    COUNT,
    DEFINITE,
    HEAD,
    KINDS,
    OBJECT,
    PLACE,
    SECOND_CLAUSE,
    STOP,
    SUBJECT,
    TIME,
    VERB,
    Clause,
    Compound,
    Fact,
    Quality,
)
from isoglot.testbed.phrase import Phrase, Realization, Sentence, Word, WordForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.testbed.meaning import Location, Meaning, Simple, Thing


class Position(Enum):
    """Where a clause stands: in some languages its word order depends on it."""

    MAIN = auto()
    AFTER_ADVERB = auto()
    """After a connective that is an adverb: "deshalb", "dann"."""
    SUBORDINATE = auto()


_POSITIONS = {
    "because": Position.SUBORDINATE,
    "therefore": Position.AFTER_ADVERB,
    "then": Position.AFTER_ADVERB,
}
_FIXED_KINDS = {"ADP": CASE, "DET": DEFINITE, "ADJ": ADJECTIVE, "PUNCT": COUNT}
"""What the words of a time or connective express, by tag; words of other tags are heads."""


class Gap(NamedTuple):
    """A place in the template of a fact for one of its entities, in some case."""

    slot: int
    case: str


class Grammar(ABC):
    """One language: realizes meanings as phrases, text and analyzed sentences."""

    language: ClassVar[str]
    stop: ClassVar[str] = "."
    question_mark: ClassVar[str] = "?"
    facts: ClassVar[dict[str, str]]
    """Template of each wording of a fact, and of the question about it (`currency?`); with `!`, a
    template that does not inflect the object's name where the usual one does. A token is
    `form/tag/kinds`; `{s}` and `{o}` are the entities, with a case after a colon."""
    articles_within: ClassVar[frozenset[str]] = frozenset()
    """Prepositions that contain an article ("im")."""
    has_gender: ClassVar[bool] = True
    """The first column of a noun in the lexicon is its gender or noun class."""
    copula_last: ClassVar[bool] = False
    """The verb of "a thing is somewhere" follows the place."""
    preposition: ClassVar[str] = ""
    """"In", before the name of a country or continent."""

    def __init__(self) -> None:
        self.lexicon = read_lexicon(self.language)
        cldr = cldr_names(self.language)
        self.names = {entity: self.name(entity, name) for entity, name in cldr.items()}
        self._phrases: dict[tuple[object, ...], Phrase] = {}
        self._templates = {key: self._parse(text) for key, text in self.facts.items()}
        self._stop = self._phrase((WordForm(self.stop, "PUNCT"),))
        self._question = self._phrase((WordForm(self.question_mark, "PUNCT"),))

    # --- what a language must say -------------------------------------------------------------

    @abstractmethod
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        """The word forms of a noun phrase."""

    @abstractmethod
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        """The word forms of a clause's verb, auxiliaries and negation."""

    @abstractmethod
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        """The word forms of "is very big"."""

    @abstractmethod
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        """The word forms of "is" in "a thing is somewhere"; none where it is not said."""

    @abstractmethod
    def clause(self, clause: Clause, position: Position) -> Realization:
        """The phrases of a verbal clause, in order."""

    # --- what a language may change -----------------------------------------------------------

    def quality(self, quality: Quality, position: Position) -> Realization:
        """The phrases of "a thing is so"."""
        del position
        gender = self.gender(quality.subject)
        key = (gender, *quality[1:])
        be = self.cached(key, lambda: self.make_quality(quality, gender))
        return [self.subject(quality.subject), (VERB, be)]

    def location(self, location: Location, position: Position) -> Realization:
        """The phrases of "a thing is somewhere"."""
        del position
        subject = self.subject(location.subject)
        place = (PLACE, self.place(location.place))
        forms = self.make_copula(location)
        be = [(VERB, self.cached(forms, lambda: forms))] if forms else []
        return [subject, place, *be] if self.copula_last else [subject, *be, place]

    def make_who(self, case: str) -> tuple[WordForm, ...]:
        """The word forms of "who"."""
        del case
        return (WordForm(self.lexicon["who"].columns[-1], "PRON"),)

    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        """The word forms of an entity's name; the case "in" is where something happens."""
        name = self.name_forms(entity)
        return (WordForm(self.preposition, "ADP", CASE), *name) if case == "in" else name

    def make_place(self, place: str) -> tuple[WordForm, ...]:
        """The word forms of a place, from the lexicon."""
        tokens = [token.partition("/") for token in self.lexicon[place].options["loc"].split("_")]
        if len(tokens) == 1:
            return (WordForm(tokens[0][0], "NOUN", HEAD + CASE),)
        forms = []
        for form, _, tag in tokens:
            kinds = HEAD if tag in ("", "ADJ") else DEFINITE if tag == "DET" else CASE
            if form in self.articles_within:
                kinds += DEFINITE
            forms.append(WordForm(form, tag or "NOUN", kinds))
        return tuple(forms)

    def name(self, entity: str, cldr: str) -> str:
        """The name of an entity as sentences use it."""
        del entity
        return cldr

    def spaced(self, before: WordForm, form: WordForm) -> bool:
        """Whether a space stands between two word forms."""
        del before
        return form.upos != "PUNCT"

    def capitalize(self, text: str) -> str:
        """The text as it begins a sentence."""
        return text[0].upper() + text[1:]

    def finish(self, text: str) -> str:
        """The joined phrases as a sentence."""
        return self.capitalize(text.lstrip(" "))

    # --- phrases, cached ----------------------------------------------------------------------

    def cached(self, key: tuple[object, ...], make: Callable[[], tuple[WordForm, ...]]) -> Phrase:
        """The phrase with this key, built on first use."""
        phrase = self._phrases.get(key)
        if phrase is None:
            phrase = self._phrases[key] = self._phrase(make())
        return phrase

    def thing(self, thing: Thing, case: str = "") -> Phrase:
        """A noun phrase."""
        if thing.noun == "who":
            return self.cached((thing, case), lambda: self.make_who(case))
        return self.cached((thing, case), lambda: self.make_thing(thing, case))

    def subject(self, thing: Thing, case: str = "") -> tuple[int, Phrase]:
        """A noun phrase in the slot of the subject."""
        return SUBJECT, self.thing(thing, case)

    def gender(self, thing: Thing) -> str:
        """The gender or noun class of a noun; empty in languages without."""
        return self.lexicon[thing.noun].columns[0] if self.has_gender else ""

    def is_animate(self, thing: Thing) -> bool:
        """Whether a noun is a person or an animal."""
        return self.lexicon[thing.noun].category in ("person", "animal")

    def verb(self, clause: Clause, agreement: str = "") -> tuple[int, Phrase]:
        """The verb of a clause with its slot; `agreement` is what its form depends on besides."""
        key = (clause.verb, clause.tense, clause.negated, agreement)
        return VERB, self.cached(key, lambda: self.make_verb(clause, agreement))

    def verb_form(self, form: WordForm) -> tuple[int, Phrase]:
        """One word of a predicate as a phrase with its slot."""
        return VERB, self.cached((form,), lambda: (form,))

    def place(self, place: str) -> Phrase:
        """Where something happens: a concept or an entity."""
        if ":" in place:
            return self.entity(place, "in")
        return self.cached((place, "in"), lambda: self.make_place(place))

    def entity(self, entity: str, case: str) -> Phrase:
        """An entity's name in a case."""
        return self.cached((entity, case), lambda: self.make_entity(entity, case))

    def name_forms(self, entity: str, name: str | None = None) -> tuple[WordForm, ...]:
        """The words of an entity's name, or of an inflected form of it."""
        words = (self.names[entity] if name is None else name).split()
        return tuple(WordForm(word, "PROPN", HEAD, entity, len(word)) for word in words)

    def fixed(self, key: str) -> Phrase:
        """A time (a concept or a year) or a connective, from the lexicon."""
        return self.cached((key,), lambda: self._make_fixed(key))

    def adjuncts(
        self, clause: Clause, case: str = ""
    ) -> tuple[Realization, Realization, Realization]:
        """The object (in a case), the place and the time of a clause; each list may be empty."""
        thing, place, time = clause.object, clause.place, clause.time
        return (
            [] if thing is None else [(OBJECT, self.thing(thing, case))],
            [(PLACE, self.place(place))] if place else [],
            [(TIME, self.fixed(time))] if time else [],
        )

    def _phrase(self, forms: tuple[WordForm, ...]) -> Phrase:
        before = WordForm("", "X")
        text = ""
        for form in forms:
            text += " " * self.spaced(before, form) + form.form
            before = form
        return Phrase(forms, text)

    def _make_fixed(self, key: str) -> tuple[WordForm, ...]:
        concept, _, year = key.partition(":")
        text = " ".join(self.lexicon[concept].columns).format(year)
        tokens = [token.rsplit("/", 1) for token in text.split()]
        if len(tokens) == 1:
            form, tag = tokens[0]
            return (WordForm(form, tag, HEAD + CASE + DEFINITE + ADJECTIVE),)
        has_head = any(tag not in _FIXED_KINDS for _, tag in tokens)
        return tuple(
            WordForm(form, tag, self._fixed_kinds(form, tag) if has_head else HEAD)
            for form, tag in tokens
        )

    def _fixed_kinds(self, form: str, tag: str) -> tuple[int, ...]:
        kinds = _FIXED_KINDS.get(tag, HEAD)
        return kinds + DEFINITE if form in self.articles_within else kinds

    # --- sentences ----------------------------------------------------------------------------

    def realize(self, meaning: Meaning, *, question: bool = False) -> Realization:
        """The phrases of a sentence, in order, with the slot each expresses."""
        if isinstance(meaning, Fact):
            phrases = self._fact(meaning)
        elif isinstance(meaning, Compound):
            position = _POSITIONS.get(meaning.connective, Position.MAIN)
            phrases = self._simple(meaning.first, Position.MAIN)
            phrases.append((CONNECTIVE, self.fixed(meaning.connective)))
            second = self._simple(meaning.second, position)
            phrases += [(slot + SECOND_CLAUSE, phrase) for slot, phrase in second]
        else:
            phrases = self._simple(meaning, Position.MAIN)
        phrases.append((STOP, self._question if question else self._stop))
        return phrases

    def text(self, meaning: Meaning, *, question: bool = False) -> str:
        """The sentence as a string."""
        phrases = self.realize(meaning, question=question)
        return self.finish("".join([phrase.text for _, phrase in phrases]))

    def sentence(self, meaning: Meaning, *, question: bool = False) -> Sentence:
        """The sentence with its words, their nodes and the entities they name."""
        text = ""
        words: list[Word] = []
        before = WordForm("", "X")
        begun = False
        for slot, phrase in self.realize(meaning, question=question):
            for word in phrase.forms:
                if text and self.spaced(before, word):
                    text += " "
                form = word.form if begun else self.capitalize(word.form)
                begun = begun or word.upos != "PUNCT"
                nodes = tuple(slot * KINDS + kind for kind in word.kinds)
                words.append(Word(form, word.upos, nodes, len(text), word.entity, word.name_length))
                text += form
                before = word
        return Sentence(text, tuple(words))

    def _simple(self, meaning: Simple, position: Position) -> Realization:
        if isinstance(meaning, Clause):
            return self.clause(meaning, position)
        if isinstance(meaning, Quality):
            return self.quality(meaning, position)
        return self.location(meaning, position)

    def _fact(self, fact: Fact) -> Realization:
        entities = {SUBJECT: fact.subject, OBJECT: fact.object}
        return [
            (part.slot, self.entity(entities[part.slot], part.case))
            if isinstance(part, Gap)
            else (VERB, part)
            for part in self._templates[fact.wording]
        ]

    def _parse(self, template: str) -> list[Gap | Phrase]:
        parts: list[Gap | Phrase] = []
        for token in template.split():
            if token.startswith("{"):
                role, _, case = token.strip("{}").partition(":")
                parts.append(Gap(SUBJECT if role == "s" else OBJECT, case))
            else:
                form, tag, kinds = token.rsplit("/", 2)
                parts.append(self._phrase((WordForm(form, tag, tuple(map(int, kinds))),)))
        return parts
