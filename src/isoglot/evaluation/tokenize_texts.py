"""Texts to token ids that fit a model: cut, counted and told.

A text is cut twice: at a number of characters that no text of the model's length reaches, so that a
line of hundreds of megabytes costs nothing, then at the model's number of positions.
`tokenize_words` and `special_tokens` give tokens of single words for any tokenizer,
`tokenize_with_offsets` the characters that each token covers.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenization.vocabulary import max_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Note = Callable[[str], None]


def tokenize_texts(
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int,
    *,
    what: str = "texts",
    note: Note | None = None,
) -> list[list[int]]:
    """The ids of each text with special tokens, at most `max_length`; `note` hears of cut ones.

    `what` names the texts in the note.
    """
    if not texts:
        return []
    ((_, encoded),) = tokenize_chunks(
        tokenizer, texts, max_length, len(texts), what=what, note=note
    )
    return encoded


def tokenize_chunks(
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int,
    size: int,
    *,
    what: str = "texts",
    note: Note | None = None,
) -> Iterator[tuple[int, list[list[int]]]]:
    """The ids of `size` texts at a time, with the index of the first one.

    While a chunk is used, a thread tokenizes the next one; tokenizers release Python's lock. `note`
    hears of cut texts after the last chunk.
    """
    starts = range(0, len(texts), size)
    cut: list[int] = []
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as thread:

        def tokenize(start: int) -> Future[tuple[list[list[int]], list[int]]]:
            return thread.submit(_tokenize, tokenizer, texts[start : start + size], max_length)

        ahead = tokenize(0)
        for start in starts:
            encoded, too_long = ahead.result()
            if start + size < len(texts):
                ahead = tokenize(start + size)
            cut += [start + number for number in too_long]
            yield start, encoded
    if cut and note is not None:
        note(
            f"{len(cut):,} of {len(texts):,} {what} (the first is number {cut[0] + 1:,}) are "
            f"longer than the model's {max_length} positions: they are cut there."
        )


def _tokenize(
    tokenizer: Any, texts: Sequence[str], max_length: int
) -> tuple[list[list[int]], list[int]]:
    """The ids of each text, and the indices of texts that were cut."""
    limit = max_characters(tokenizer, max_length)
    shortened = [text[:limit] for text in texts]
    encoded = _all_ids(tokenizer, shortened)
    too_long = [
        number
        for number, (text, ids) in enumerate(zip(texts, encoded, strict=True))
        if len(ids) > max_length or len(text) > limit
    ]
    if too_long:
        again = tokenizer(
            [shortened[number] for number in too_long], truncation=True, max_length=max_length
        )["input_ids"]
        for number, ids in zip(too_long, again, strict=True):
            encoded[number] = ids
    return encoded, too_long


def _all_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """The ids of each text, however long, with special tokens.

    transformers converts masks and token types of each text to Python lists besides, which takes
    longer than tokenizing. It is called for one text, and so sets the library's options.
    """
    # verbose: transformers warns of long texts, which are cut later
    first: list[list[int]] = tokenizer(texts[:1], verbose=False)["input_ids"]
    if not tokenizer.is_fast:
        return [*first, *tokenizer(texts[1:], verbose=False)["input_ids"]] if texts[1:] else first
    rest = tokenizer.backend_tokenizer.encode_batch_fast(texts[1:])
    return [*first, *(encoding.ids for encoding in rest)]


def tokenize_words(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """The token ids of each word as after a space, without special tokens."""
    if not words:
        return []
    tokenize = partial(tokenizer, add_special_tokens=False)
    alone, after = (tokenize(text)["input_ids"] for text in ("a", " a"))
    # byte-level tokenizers have another id for a word after a space
    space = " " if alone != after and len(after) <= len(alone) else ""
    ids: list[list[int]] = tokenize([space + word for word in words])["input_ids"]
    return ids


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer puts before and after a sentence; both may be empty."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    number = len(bare)
    begin = next(n for n in range(len(whole)) if whole[n : n + number] == bare)
    return whole[:begin], whole[begin + number :]


def tokenize_with_offsets(
    tokenizer: Any, texts: Sequence[str]
) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """For each text its token ids, and the characters [start, end) that each token covers.

    Special tokens are not added, and a text that spells one is encoded as plain text.
    """
    if not texts:
        return []
    found = tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    return list(zip(found["input_ids"], found["offset_mapping"], strict=True))


def lossy_note(tokenizer: Any) -> str | None:
    """A sentence if the tokenizer changes text so that different words become one."""
    upper, lower, accented, plain = tokenizer(
        ["Ab", "ab", "né", "ne"], add_special_tokens=False, verbose=False
    )["input_ids"]
    unknown = tokenizer.unk_token_id
    lost = ["letters' case"] if upper == lower and unknown not in lower else []
    lost += ["accents"] if accented == plain and unknown not in plain else []
    if not lost:
        return None
    return (
        f"the tokenizer drops {' and '.join(lost)}, which then cost no bits: compare bits per "
        "character only with models whose tokenizers do the same."
    )
