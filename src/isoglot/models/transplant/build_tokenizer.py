"""Tokenizers with fewer or more tokens than a given one, which split text as before.

`trim_tokenizer` keeps some tokens and renumbers them in their old order. Tokens that a tokenizer
cannot work without are kept besides: special tokens, the bytes of unknown characters, for BPE all
tokens that a kept one is merged from, for Unigram the letters of special tokens. Text whose tokens
are all kept is split as before: Unigram's best path and WordPiece's longest match are still there,
and BPE's merges inside a token do not depend on its context.

`grow_tokenizer` adds whole words, with ids after all others; text without them is split as before.
"""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isoglot.errors import ModelError
from isoglot.models.transplant.tokens import BYTE_OF_LETTER, TokenizerTokens, is_byte_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def grow_tokenizer(tokens: TokenizerTokens, words: Sequence[str], folder: Path) -> TokenizerTokens:
    """Write the tokenizer with more words to a folder, and open it from there."""
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_str(tokens.tokenizer.backend_tokenizer.to_str())
    # the space before a word belongs to it, as in the tokenizers' own tokens
    tokenizer.add_tokens(
        [AddedToken(word, single_word=True, lstrip=True, normalized=False) for word in words]
    )
    _save(tokenizer, tokens.tokenizer, folder)
    return TokenizerTokens.open(folder)


def trim_tokenizer(tokens: TokenizerTokens, kept: list[int], folder: Path) -> TokenizerTokens:
    """Write the tokenizer with the kept ids only to a folder, and open it from there."""
    from tokenizers import Tokenizer

    content = trim_content(tokens.content, kept)
    _save(Tokenizer.from_str(json.dumps(content)), tokens.tokenizer, folder)
    trimmed = TokenizerTokens.open(folder)
    names = dict(tokens.by_id)
    if trimmed.ids != {names[old]: new for new, old in enumerate(kept)}:
        raise ModelError(
            f"{tokens.folder}: its tokenizer does not keep its ids in the order of its tokens, so "
            "it cannot be trimmed. Save it again with transformers' save_pretrained first."
        )
    return trimmed


def _save(changed: Any, like: Any, folder: Path) -> None:
    """Write a `tokenizers.Tokenizer` with the special tokens and limits of a transformers one.

    The generic fast class keeps tokenizer.json unchanged; some classes of single models would
    rebuild it from its vocabulary.
    """
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=changed,
        model_max_length=like.model_max_length,
        padding_side=like.padding_side,
        model_input_names=like.model_input_names,
        **like.special_tokens_map,
    ).save_pretrained(str(folder))


def add_required_tokens(tokens: TokenizerTokens, wanted: Iterable[int]) -> list[int]:
    """The wanted ids and those that the tokenizer cannot work without, ascending."""
    kept = {*wanted, *tokens.special}
    if tokens.unknown is not None:
        kept.add(tokens.unknown)
    for index, token in tokens.by_id:
        is_letter = tokens.format.convention == "bytes" and token in BYTE_OF_LETTER
        if is_letter or is_byte_token(token, tokens.format):
            kept.add(index)
    algorithm = tokens.content["model"]["type"]
    if algorithm == "BPE":
        kept.update(_merged_from(tokens, kept))
    elif algorithm == "Unigram":
        kept.update(_letters_of_special_tokens(tokens, kept))
    return sorted(kept)


def trim_content(content: Any, kept: list[int]) -> Any:
    """The content of tokenizer.json with these ids only, renumbered."""
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
            merge
            for merge in model["merges"]
            if {*_sides(merge), "".join(_sides(merge))} <= model["vocab"].keys()
        ]
    content["added_tokens"] = [
        {**token, "id": numbers[token["id"]]}
        for token in content["added_tokens"]
        if token["id"] in numbers
    ]
    content["truncation"] = content["padding"] = None
    _renumber(content["post_processor"], numbers)
    return content


def _merged_from(tokens: TokenizerTokens, kept: Iterable[int]) -> set[int]:
    """All tokens that occur while BPE merges the kept ones, from single characters on."""
    model = tokens.content["model"]
    ranks = {_sides(merge): rank for rank, merge in enumerate(model["merges"])}
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


def _letters_of_special_tokens(tokens: TokenizerTokens, kept: Iterable[int]) -> set[int]:
    """The letters of special tokens and bytes.

    Without them Unigram would read text that merely spells `<s>` or `<0x41>` as that token.
    """
    names = dict(tokens.by_id)
    special = (
        names[index]
        for index in kept
        if index in tokens.special or is_byte_token(names[index], tokens.format)
    )
    return {tokens.ids[letter] for letter in set("".join(special)) if letter in tokens.ids}


def _sides(merge: Any) -> tuple[str, str]:
    """The two sides of a merge, which older files write as one string."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def _renumber(processor: Any, numbers: dict[int, int]) -> None:
    """Give the special tokens that a post-processor adds their new ids."""
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
