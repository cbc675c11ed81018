"""What all grammars share: phrases built once and kept, sentences put together from them.

A grammar turns a meaning into phrases, each with the slot it expresses. A language's file says
how its noun phrases, verbs and entity names look and in which order a clause puts them; this one
joins clauses, fills the wordings of facts, and spaces and capitalises the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from isoglot.testbed.entities import cldr_names
from isoglot.testbed.languages.nodes import (
    ADJECTIVE,
    CONNECTIVE,
    COUNT,
    DEFINITE,
    HEAD,
    OBJECT,
    PLACE,
    RELATION,
    STOP,
    SUBJECT,
    TIME,
    VERB,
)
from isoglot.testbed.lexicon import read_lexicon
from isoglot.testbed.meaning import CLAUSE, KINDS, Clause, Compound, Fact, Quality
from isoglot.testbed.phrase import Parts, Phrase, Piece, Sentence, Word

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.testbed.meaning import Location, Meaning, Simple, Thing


class Position(Enum):
    """Where a clause stands: some languages order its words accordingly."""

    MAIN = auto()
    AFTER_ADVERB = auto()
    """After a connective that is an adverb: "deshalb", "dann"."""
    SUBORDINATE = auto()


_POSITIONS = {
    "because": Position.SUBORDINATE,
    "therefore": Position.AFTER_ADVERB,
    "then": Position.AFTER_ADVERB,
}


_FIXED_KINDS = {"ADP": RELATION, "DET": DEFINITE, "ADJ": ADJECTIVE, "PUNCT": COUNT}
"""What the words of a time or connective express of it; others are its head."""


class Gap(NamedTuple):
    """A place in the wording of a fact for one of its entities, in some case."""

    slot: int
    case: str


class Grammar(ABC):
    """One language: realises meanings."""

    language: ClassVar[str]
    stop: ClassVar[str] = "."
    question_mark: ClassVar[str] = "?"
    facts: ClassVar[dict[str, str]]
    """Wording of each kind of fact, and of the question about it (`currency?`); with `!`, a
    wording that leaves the object's name as it is where the usual one does not. A token is
    `form/tag/kinds`; `{s}` and `{o}` are the entities, with a case after a colon."""
    articles_within: ClassVar[frozenset[str]] = frozenset()
    """Prepositions that contain an article ("im")."""

    def __init__(self) -> None:
        self.lexicon = read_lexicon(self.language)
        self.names = {entity: self.name(entity, name) for entity, name in self._cldr().items()}
        self._kept: dict[tuple[object, ...], Phrase] = {}
        self._wordings = {key: self._parse(text) for key, text in self.facts.items()}
        self._stop = self.phrase((Piece(self.stop, "PUNCT"),))
        self._question = self.phrase((Piece(self.question_mark, "PUNCT"),))

    # --- what a language must say -------------------------------------------------------------

    @abstractmethod
    def make_thing(self, thing: Thing, case: str) -> tuple[Piece, ...]:
        """The pieces of a noun phrase."""

    @abstractmethod
    def clause(self, clause: Clause, position: Position) -> Parts:
        """The phrases of a verbal clause, in order."""

    @abstractmethod
    def quality(self, quality: Quality, position: Position) -> Parts:
        """The phrases of "a thing is so"."""

    @abstractmethod
    def location(self, location: Location, position: Position) -> Parts:
        """The phrases of "a thing is somewhere"."""

    @abstractmethod
    def make_entity(self, entity: str, case: str) -> tuple[Piece, ...]:
        """The pieces of an entity's name in a case; "in" is the place where something happens."""

    def name(self, entity: str, cldr: str) -> str:
        """The name of an entity as sentences use it."""
        del entity
        return cldr

    def spaced(self, before: Piece, piece: Piece) -> bool:
        """Whether a space stands between two pieces."""
        del before
        return piece.upos != "PUNCT"

    def capitalise(self, text: str) -> str:
        """The text as it begins a sentence."""
        return text[0].upper() + text[1:]

    # --- phrases, kept ------------------------------------------------------------------------

    def phrase(self, pieces: tuple[Piece, ...]) -> Phrase:
        """Pieces with their text."""
        before = Piece("", "X")
        text = ""
        for piece in pieces:
            text += " " * self.spaced(before, piece) + piece.form
            before = piece
        return Phrase(pieces, text)

    def kept(self, key: tuple[object, ...], make: Callable[[], tuple[Piece, ...]]) -> Phrase:
        """The phrase with this key, made when it is first asked for."""
        phrase = self._kept.get(key)
        if phrase is None:
            phrase = self._kept[key] = self.phrase(make())
        return phrase

    def thing(self, thing: Thing, case: str = "") -> Phrase:
        """A noun phrase."""
        return self.kept((thing, case), lambda: self.make_thing(thing, case))

    def place(self, place: str) -> Phrase:
        """Where something happens: a concept or an entity."""
        if ":" in place:
            return self.entity(place, "in")
        return self.kept((place, "in"), lambda: self.make_place(place))

    def entity(self, entity: str, case: str) -> Phrase:
        """An entity's name in a case."""
        return self.kept((entity, case), lambda: self.make_entity(entity, case))

    def fixed(self, key: str) -> Phrase:
        """A time (a concept or a year) or a connective, as the lexicon has it."""
        return self.kept((key,), lambda: self._make_fixed(key))

    def adjuncts(self, clause: Clause, case: str = "") -> tuple[Parts, Parts, Parts]:
        """The object (in a case), the place and the time of a clause; each list may be empty."""
        thing, place, time = clause.object, clause.place, clause.time
        return (
            [] if thing is None else [(OBJECT, self.thing(thing, case))],
            [(PLACE, self.place(place))] if place else [],
            [(TIME, self.fixed(time))] if time else [],
        )

    def _make_fixed(self, key: str) -> tuple[Piece, ...]:
        concept, _, year = key.partition(":")
        text = " ".join(self.lexicon[concept].columns).format(year)
        tokens = [token.rsplit("/", 1) for token in text.split()]
        content = [tag for _, tag in tokens if tag not in _FIXED_KINDS]
        if len(tokens) == 1:
            form, tag = tokens[0]
            return (Piece(form, tag, HEAD + RELATION + DEFINITE + ADJECTIVE),)
        return tuple(
            Piece(form, tag, self._fixed_kinds(form, tag) if content else HEAD)
            for form, tag in tokens
        )

    def _fixed_kinds(self, form: str, tag: str) -> tuple[int, ...]:
        kinds = _FIXED_KINDS.get(tag, HEAD)
        return kinds + DEFINITE if form in self.articles_within else kinds

    def make_place(self, place: str) -> tuple[Piece, ...]:
        """The pieces of a place phrase, from the lexicon."""
        tokens = [token.partition("/") for token in self.lexicon[place].options["loc"].split("_")]
        if len(tokens) == 1:
            return (Piece(tokens[0][0], "NOUN", HEAD + RELATION),)
        pieces = []
        for form, _, tag in tokens:
            kinds = HEAD if tag in ("", "ADJ") else DEFINITE if tag == "DET" else RELATION
            if form in self.articles_within:
                kinds += DEFINITE
            pieces.append(Piece(form, tag or "NOUN", kinds))
        return tuple(pieces)

    def name_pieces(self, entity: str, name: str | None = None) -> tuple[Piece, ...]:
        """The words of a name, inflected or as it is."""
        words = (self.names[entity] if name is None else name).split()
        return tuple(Piece(word, "PROPN", HEAD, entity, len(word)) for word in words)

    # --- sentences ----------------------------------------------------------------------------

    def realise(self, meaning: Meaning, *, question: bool = False) -> Parts:
        """The phrases of a sentence, in order, with the slot each expresses."""
        if isinstance(meaning, Fact):
            parts = self._fact(meaning)
        elif isinstance(meaning, Compound):
            connective = meaning.connective
            position = _POSITIONS.get(connective, Position.MAIN)
            parts = self._simple(meaning.first, Position.MAIN)
            parts.append((CONNECTIVE, self.fixed(connective)))
            second = self._simple(meaning.second, position)
            parts += [(slot + CLAUSE, phrase) for slot, phrase in second]
        else:
            parts = self._simple(meaning, Position.MAIN)
        parts.append((STOP, self._question if question else self._stop))
        return parts

    def text(self, meaning: Meaning, *, question: bool = False) -> str:
        """The sentence as a string."""
        parts = self.realise(meaning, question=question)
        return self.finish("".join([phrase.text for _, phrase in parts]))

    def sentence(self, meaning: Meaning, *, question: bool = False) -> Sentence:
        """The sentence with its words, their nodes and the entities they name."""
        text = ""
        words: list[Word] = []
        before = Piece("", "X")
        begun = False
        for slot, phrase in self.realise(meaning, question=question):
            for piece in phrase.pieces:
                if text and self.spaced(before, piece):
                    text += " "
                form = piece.form if begun else self.capitalise(piece.form)
                begun = begun or piece.upos != "PUNCT"
                nodes = tuple(slot * KINDS + kind for kind in piece.kinds)
                words.append(Word(form, piece.upos, nodes, len(text), piece.entity, piece.mention))
                text += form
                before = piece
        return Sentence(text, tuple(words))

    def finish(self, text: str) -> str:
        """The joined phrases as a sentence."""
        return self.capitalise(text.lstrip(" "))

    def _simple(self, meaning: Simple, position: Position) -> Parts:
        if isinstance(meaning, Clause):
            return self.clause(meaning, position)
        if isinstance(meaning, Quality):
            return self.quality(meaning, position)
        return self.location(meaning, position)

    def _fact(self, fact: Fact) -> Parts:
        fillers = {SUBJECT: fact.subject, OBJECT: fact.object}
        return [
            (part.slot, self.entity(fillers[part.slot], part.case))
            if isinstance(part, Gap)
            else (VERB, part)
            for part in self._wordings[fact.wording]
        ]

    def _parse(self, wording: str) -> list[Gap | Phrase]:
        parts: list[Gap | Phrase] = []
        for token in wording.split():
            if token.startswith("{"):
                role, _, case = token.strip("{}").partition(":")
                parts.append(Gap(SUBJECT if role == "s" else OBJECT, case))
            else:
                form, tag, kinds = token.rsplit("/", 2)
                parts.append(self.phrase((Piece(form, tag, tuple(map(int, kinds))),)))
        return parts

    def _cldr(self) -> dict[str, str]:
        return cldr_names(self.language)
