"""Pieces of single words, and what stands around a sentence, whatever the tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def word_pieces(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """The ids of each word, without special tokens, as after a space."""
    space = " " if _tells_spaces(tokenizer) else ""
    if not words:
        return []
    ids: list[list[int]] = tokenizer([space + word for word in words], add_special_tokens=False)[
        "input_ids"
    ]
    return ids


def specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer puts before a sentence and after it.

    Asked with a sentence: it may call them cls and sep, bos and eos, or put none.
    """
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    number = len(bare)
    begin = next(n for n in range(len(whole)) if whole[n : n + number] == bare)
    return whole[:begin], whole[begin + number :]


def _tells_spaces(tokenizer: Any) -> bool:
    """Byte-level tokenizers have one id for a word after a space and another for it alone."""
    alone, after = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", " a"))
    return alone != after and len(after) <= len(alone)
