"""What a sentence says, in no language: things, clauses, facts, and how clauses are joined.

Every part of a meaning has a *slot* (`Role`, plus `CLAUSE` for the second clause), and what a
word expresses of a slot is a `Kind`; together they name a node. Words of two languages that share
a node translate each other: that is where gold alignments come from.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    """The slots of one clause or fact."""

    SUBJECT = 0
    VERB = 1
    OBJECT = 2
    PLACE = 3
    TIME = 4
    CONNECTIVE = 5
    STOP = 6


CLAUSE = 8
"""The slots of the second clause are those of the first plus this."""


class Kind(IntEnum):
    """What a word expresses of its slot."""

    HEAD = 0
    DEFINITE = 1
    ADJECTIVE = 2
    COUNT = 3
    RELATION = 4
    """An adposition or a case."""
    TENSE = 5
    """An auxiliary or a copula, or the tense of an inflected verb."""
    NEGATION = 6
    DEGREE = 7


KINDS = len(Kind)


class Tense(IntEnum):
    """When a clause holds."""

    PRESENT = 0
    PAST = 1
    FUTURE = 2


class Thing(NamedTuple):
    """Somebody or something: "the red house", "five apples"; the noun "who" asks for it."""

    noun: str
    adjective: str = ""
    number: str = ""


class Clause(NamedTuple):
    """Somebody does something. Empty strings stand for what is not said."""

    subject: Thing
    verb: str
    object: Thing | None = None
    place: str = ""
    """A concept ("school") or an entity ("territory:JP")."""
    time: str = ""
    """A concept ("yesterday") or a year ("in_year:1999")."""
    tense: Tense = Tense.PRESENT
    negated: bool = False
    fronted: bool = False
    """The time comes first: another order of the same meaning."""


class Quality(NamedTuple):
    """A thing is so: "the house is very big"."""

    subject: Thing
    adjective: str
    very: bool = False
    negated: bool = False


class Location(NamedTuple):
    """A thing is somewhere: "the book is in the library"."""

    subject: Thing
    place: str
    negated: bool = False


class Fact(NamedTuple):
    """Something true of the real world, between two entities; `wording` is one of its templates."""

    wording: str
    subject: str
    object: str


Simple = Clause | Quality | Location


class Compound(NamedTuple):
    """Two clauses and what joins them."""

    first: Simple
    connective: str
    second: Simple


Meaning = Simple | Fact | Compound
