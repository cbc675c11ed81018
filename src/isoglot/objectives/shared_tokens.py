"""The tokens that two tokenizers have in common: those that spell the same, marks put aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.errors import RecipeError
from isoglot.models.transplant import Tokens
from isoglot.models.transplant.lookup import Lookup

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.types import LongArray


def shared_tokens(first: Path, second: Path) -> tuple[LongArray, LongArray]:
    """The ids of the shared tokens in the one tokenizer and, in the same order, in the other.

    Raises:
        RecipeError: they have none in common.
    """
    one, other = Tokens.open(first), Tokens.open(second)
    lookup = Lookup(other)
    found: dict[int, int] = {}
    for index, token in one.by_id:
        if index not in one.special:
            hit = lookup.token(token, one.surface(token))
            if hit is not None and hit.kind in ("exact", "marker"):
                found.setdefault(hit.id, index)
    if not found:
        raise RecipeError(
            f"objectives.distill.compare: vocabulary needs tokens that {first} and {second} share, "
            "and they share none. Compare words instead."
        )
    return np.array(list(found.values()), np.int64), np.array(list(found), np.int64)
