"""A tokenizer with some of its tokens only, which splits text into those as it did before.

Reads the content of a tokenizer.json and the ids to keep; gives the content with the others gone
and the ids closed up, in their old order. What cannot be missed is kept besides: special tokens,
the bytes that spell unknown characters, for BPE all that a kept token is merged from, for Unigram
the letters that spell special tokens.

A text whose tokens are all kept is split as before: Unigram's best path and WordPiece's longest
piece are still there, and BPE's merges inside a token do not depend on what is around it.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isoglot.models.transplant.surface import BYTE_OF_LETTER, is_byte_piece

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.models.transplant.tokens import Tokens


def with_needed(tokens: Tokens, wanted: Iterable[int]) -> list[int]:
    """The wanted ids and those that cannot be missed, ascending."""
    kept = {*wanted, *tokens.special}
    if tokens.unknown is not None:
        kept.add(tokens.unknown)
    for index, token in tokens.by_id:
        is_letter = tokens.written.convention == "bytes" and token in BYTE_OF_LETTER
        if is_letter or is_byte_piece(token, tokens.written):
            kept.add(index)
    kind = tokens.content["model"]["type"]
    if kind == "BPE":
        kept.update(_merged_from(tokens, kept))
    elif kind == "Unigram":
        kept.update(_spelling(tokens, kept))
    return sorted(kept)


def trimmed(content: Any, kept: list[int]) -> Any:
    """The content of tokenizer.json with these ids only, numbered anew."""
    numbers = {old: new for new, old in enumerate(kept)}
    content = copy.deepcopy(content)
    model = content["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [entry for old, entry in enumerate(model["vocab"]) if old in numbers]
        if model.get("unk_id") is not None:
            model["unk_id"] = numbers[model["unk_id"]]
    else:
        model["vocab"] = {
            token: numbers[old] for token, old in model["vocab"].items() if old in numbers
        }
    if "merges" in model:
        model["merges"] = [
            merge for merge in model["merges"] if _possible(_parts(merge), model["vocab"])
        ]
    content["added_tokens"] = [
        {**token, "id": numbers[token["id"]]}
        for token in content["added_tokens"]
        if token["id"] in numbers
    ]
    content["truncation"] = content["padding"] = None
    _renumber(content["post_processor"], numbers)
    return content


def _merged_from(tokens: Tokens, kept: Iterable[int]) -> set[int]:
    """All tokens that appear while BPE puts the kept ones together, from single characters on."""
    model = tokens.content["model"]
    ranks = {_parts(merge): rank for rank, merge in enumerate(model["merges"])}
    names = dict(tokens.by_id)
    found: set[str] = set()
    for index in kept:
        if index in tokens.special:
            continue
        parts = list(names[index])
        found.update(parts)
        while len(parts) > 1:
            rank, place = min(
                (ranks.get(pair, len(ranks)), place) for place, pair in enumerate(pairwise(parts))
            )
            if rank == len(ranks):
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            found.add(parts[place])
    return {tokens.ids[token] for token in found if token in tokens.ids}


def _spelling(tokens: Tokens, kept: Iterable[int]) -> set[int]:
    """The letters of special tokens and bytes.

    Without them Unigram would take a text that merely spells `<s>` or `<0x41>` for the token.
    """
    names = dict(tokens.by_id)
    never = (
        names[index]
        for index in kept
        if index in tokens.special or is_byte_piece(names[index], tokens.written)
    )
    return {tokens.ids[letter] for letter in set("".join(never)) if letter in tokens.ids}


def _parts(merge: Any) -> tuple[str, str]:
    """The two sides of a merge, which older files write as one string."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def _possible(parts: tuple[str, str], vocabulary: dict[str, int]) -> bool:
    return all(token in vocabulary for token in (*parts, "".join(parts)))


def _renumber(processor: Any, numbers: dict[int, int]) -> None:
    """Give the special tokens around a text their new ids."""
    if processor is None:
        return
    for inner in processor.get("processors", ()):
        _renumber(inner, numbers)
    for token in processor.get("special_tokens", {}).values():
        token["ids"] = [numbers[old] for old in token["ids"]]
    for end in ("sep", "cls"):
        if end in processor:
            token, old = processor[end]
            processor[end] = [token, numbers[old]]
