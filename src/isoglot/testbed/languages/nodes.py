"""Short names for the slots and kinds of a meaning; grammars mention them on every line."""

from __future__ import annotations

from isoglot.testbed.meaning import Kind, Role

SUBJECT, VERB, OBJECT, PLACE, TIME, CONNECTIVE, STOP = (int(role) for role in Role)

Kinds = tuple[int, ...]

_kinds: list[Kinds] = [(int(kind),) for kind in Kind]
HEAD, DEFINITE, ADJECTIVE, COUNT, RELATION, TENSE, NEGATION, DEGREE = _kinds
