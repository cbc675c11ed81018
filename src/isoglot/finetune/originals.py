"""Translated training rows beside their originals, joined by the id that a translation keeps.

An id that two languages number on their own would join rows that mean different things, so a pair
whose labels differ is refused like one that is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_originals(
    translated: Sequence[Any], originals: Sequence[Any], *, language: str, original_language: str
) -> list[tuple[Any, Any]]:
    """Each translated example and its original.

    Raises:
        CorpusError: a row has no original, or one with another label.
    """
    by_id = {example.id: example for example in originals}

    def refuse(rows: Sequence[Any], why: str) -> None:
        if rows:
            raise CorpusError(
                f"{len(rows)} of {len(translated)} training rows of {language!r} (the first is "
                f"{rows[0].id!r}) are no translations of rows of {original_language!r}: {why}. "
                "Use the scenario pooled or supervised for every language's own data."
            )

    refuse([example for example in translated if example.id not in by_id], "their ids differ")
    pairs = [(example, by_id[example.id]) for example in translated]
    refuse(
        [example for example, original in pairs if _label(example) != _label(original)],
        "the labels of rows with the same id differ",
    )
    return pairs


def _label(example: Any) -> str | None:
    """The label of a pair; an answer is that of its context's language."""
    found: str | None = getattr(example, "label", None)
    return found
