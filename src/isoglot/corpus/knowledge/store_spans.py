"""From the characters of a name to the tokens that spell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def token_span(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The tokens [first, last) that have a character of [start, end); none if none has.

    A token that runs over the edge of a name belongs to it: hiding the name must hide all of it.

    Args:
        offsets: the characters that each token stands for, ascending.
        start: the name's first character.
        end: the character after its last.
    """
    inside = [
        number for number, (begin, stop) in enumerate(offsets) if begin < end and stop > start
    ]
    return (inside[0], inside[-1] + 1) if inside else None
