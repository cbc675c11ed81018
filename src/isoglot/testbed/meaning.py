"""What a sentence says, in no language: things, clauses, facts and compound sentences.

Every part of a meaning has a *slot* (subject, verb, ...), and a word expresses some *kinds* of its
slot (the head, the article, the tense, ...). A slot and a kind together are a *node*:
`slot * KINDS + kind`. Words of two languages that share a node translate each other: gold word
alignments come from there.

`World` hashes the `repr` of a meaning, so the names of these classes and of their fields decide
which text is generated.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

SUBJECT, VERB, OBJECT, PLACE, TIME, CONNECTIVE, STOP = range(7)
"""The slots of one clause or fact."""
SECOND_CLAUSE = 8
"""Added to the slots of the second clause of a compound sentence."""

KINDS = 8
_kinds: list[tuple[int, ...]] = [(kind,) for kind in range(KINDS)]
HEAD, DEFINITE, ADJECTIVE, COUNT, CASE, TENSE, NEGATION, DEGREE = _kinds
"""What a word expresses of its slot, as tuples, so that kinds can be added.

CASE is an adposition or a case marker; TENSE an auxiliary, a copula or the tense of a verb form.
"""


class Tense(IntEnum):
    """When a clause holds."""

    PRESENT = 0
    PAST = 1
    FUTURE = 2


class Thing(NamedTuple):
    """A noun phrase: "the red house", "five apples"; the noun "who" asks for one."""

    noun: str
    adjective: str = ""
    number: str = ""


class Clause(NamedTuple):
    """Somebody does something; an empty string is a part that is not said."""

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
    """A thing has a quality: "the house is very big"."""

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
    """A relation between two entities; `wording` names one of its sentence templates."""

    wording: str
    subject: str
    object: str


Simple = Clause | Quality | Location


class Compound(NamedTuple):
    """Two clauses and the concept of the conjunction between them."""

    first: Simple
    connective: str
    second: Simple


Meaning = Simple | Fact | Compound
