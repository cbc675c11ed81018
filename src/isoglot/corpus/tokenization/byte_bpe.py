"""Byte-level BPE tokenizers of Hugging Face folders (RoBERTa, ModernBERT, ...), compiled.

    word with the space before it --GPT-2's rule--> pre-tokens --merges--> ids

GPT-2's rule splits off `'s` and its like, and divides letters, numbers and other characters. What a
character is, the library is asked once. Words with characters that normalization changes or may
compose, and very long ones, are encoded by the library (`hf_words`).
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from typing_extensions import override

from isoglot.corpus.tokenization.hf_words import ASKED, HFWordEncoder, splits_at_spaces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.corpus.tokenization.word_table import Codes, Words
    from isoglot.types import BoolArray, IntArray, LongArray

_LETTER, _NUMBER, _OTHER = 2, 3, 4
_MAX_CHARACTERS = 500
"""Of a word: the time of merging grows with the square of its length."""
_HASH = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_HANGUL_JAMO = "".join(map(chr, range(0x1100, 0x1200)))
_QUOTE, _S, _T, _M, _D, _R, _V, _E, _L = map(ord, "'stmdrvel")
_SPACE = ord(" ")


def byte_characters() -> dict[int, str]:
    """Byte -> the visible character that stands for it in a vocabulary (GPT-2's table)."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {
        byte: chr(256 + number) for number, byte in enumerate(others)
    }


def is_supported(sections: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has the steps that are computed here."""
    model, normalizer = sections["model"], sections["normalizer"]
    return (
        model["type"] == "BPE"
        and not any(
            model.get(name)
            for name in ("continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")
        )
        and (sections["pre_tokenizer"] or {}).get("type") == "ByteLevel"
        and (normalizer or {"type": "NFC"})["type"] == "NFC"
        and splits_at_spaces(sections)
        and all(character in model["vocab"] for character in byte_characters().values())
    )


@cache
def _composing() -> frozenset[str]:
    """Characters that NFC may compose with the one before."""
    decomposed = (unicodedata.decomposition(chr(code)) for code in range(sys.maxunicode + 1))
    pairs = (one.split() for one in decomposed if one and not one.startswith("<"))
    return frozenset(_HANGUL_JAMO) | {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2}


class ByteBPEEncoder(HFWordEncoder):
    """Encodes each distinct word once, most of them by compiled code."""

    def __init__(self, folder: Path) -> None:
        """`folder` has a tokenizer that `is_supported`."""
        super().__init__(folder)
        sections = self._library.sections()
        vocabulary: dict[str, int] = sections["model"]["vocab"]
        self._composes = sections["normalizer"] is not None
        self._spaced = bool(sections["pre_tokenizer"]["add_prefix_space"])
        bytes_ = byte_characters()
        self._bytes = np.array([vocabulary[bytes_[byte]] for byte in range(256)], np.int32)
        merges = [
            one.split(" ") if isinstance(one, str) else one for one in sections["model"]["merges"]
        ]
        rows = [(vocabulary[a], vocabulary[b], vocabulary[a + b]) for a, b in merges]
        self._merges = _build_merges(np.array(rows, np.int32).reshape(-1, 3))

    @override
    def encode_words(self, words: Words) -> tuple[IntArray, IntArray, BoolArray]:
        self.learn_characters(words.codes)
        is_spaced = ~words.is_first | self._spaced
        ids, counts, asked = _encode(
            words.codes, words.lengths, is_spaced, self._kinds, self._bytes, *self._merges
        )
        return self.encode_others(words, ids, counts, asked)

    @override
    def kind_of(self, character: str) -> int:
        if self._composes and (
            unicodedata.category(character)[0] == "C"
            or unicodedata.combining(character)
            or character in _composing()
            or self._library.normalize(character) != character
        ):
            return ASKED
        # one pre-token with its like
        for kind, like in ((_LETTER, "a"), (_NUMBER, "1"), (_OTHER, "!")):
            if len(self._library.pre_tokenize(f"{like}{character}{like}")) == 1:
                return kind
        return ASKED


@njit(nogil=True, cache=True)
def _build_merges(
    rows: IntArray,
) -> tuple[npt.NDArray[np.uint64], IntArray, IntArray]:  # pragma: no cover - compiled
    """A hash table of pairs of ids, with their ranks and what they become."""
    size = 16
    while size < 2 * len(rows):
        size *= 2
    keys = np.full(size, _EMPTY, np.uint64)
    ranks, merged = np.zeros(size, np.int32), np.zeros(size, np.int32)
    for rank in range(len(rows)):
        slot = _slot(keys, rows[rank, 0], rows[rank, 1])
        keys[slot] = _pair(rows[rank, 0], rows[rank, 1])
        ranks[slot], merged[slot] = rank, rows[rank, 2]
    return keys, ranks, merged


@njit(nogil=True, cache=True, inline="always")
def _pair(first: int, second: int) -> np.uint64:  # pragma: no cover - compiled
    return (np.uint64(first) << np.uint64(32)) | np.uint64(second)


@njit(nogil=True, cache=True)
def _slot(
    keys: npt.NDArray[np.uint64], first: int, second: int
) -> np.int64:  # pragma: no cover - compiled
    """The slot of a pair, or the empty one where it belongs."""
    key, mask = _pair(first, second), np.uint64(len(keys) - 1)
    slot = ((key * _HASH) >> np.uint64(20)) & mask
    while keys[slot] != _EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@njit(nogil=True, cache=True)
def _encode(
    codes: Codes,
    lengths: LongArray,
    is_spaced: BoolArray,
    kinds: npt.NDArray[np.uint8],
    bytes_: IntArray,
    keys: npt.NDArray[np.uint64],
    ranks: IntArray,
    merged: IntArray,
) -> tuple[IntArray, IntArray, BoolArray]:  # pragma: no cover - compiled
    """The ids of words, the number of each, and which words the library encodes."""
    ids = np.empty(4 * len(codes) + len(lengths), np.int32)
    counts, asked = np.zeros(len(lengths), np.int32), np.zeros(len(lengths), np.bool_)
    found = np.empty(4 * _MAX_CHARACTERS + 1, np.int32)
    written, start = 0, 0
    for word, length in enumerate(lengths):
        end, before, begin = start + length, written, start
        asked[word] = length > _MAX_CHARACTERS
        for place in range(start, end):
            asked[word] |= kinds[codes[place]] == ASKED
        spaced = is_spaced[word]
        while begin < end and not asked[word]:
            stop = begin + (0 if spaced else _contraction(codes[begin:end]))
            if stop == begin:
                kind = kinds[codes[begin]]
                while stop < end and kinds[codes[stop]] == kind:
                    stop += 1
            size = 0
            if spaced:
                found[0], size, spaced = bytes_[_SPACE], 1, False
            for code in codes[begin:stop]:
                size = _write_bytes(code, bytes_, found, size)
            size = _merge(found, size, keys, ranks, merged)
            ids[written : written + size] = found[:size]
            written, begin = written + size, stop
        counts[word] = written - before
        start = end
    return ids[:written].copy(), counts, asked


@njit(nogil=True, cache=True)
def _contraction(codes: Codes) -> int:  # pragma: no cover - compiled
    """The length of a contraction that some characters begin with; 0 if they do not."""
    if codes[0] != _QUOTE or len(codes) == 1:
        return 0
    first = codes[1]
    if first in (_S, _T, _M, _D):
        return 2
    second = codes[2] if len(codes) > 2 else np.uint32(0)
    return 3 if (first in (_R, _V) and second == _E) or (first == _L and second == _L) else 0


@njit(nogil=True, cache=True)
def _write_bytes(
    code: int, bytes_: IntArray, out: IntArray, size: int
) -> int:  # pragma: no cover - compiled
    """Write the ids of a character's bytes in UTF-8."""
    if code < 0x80:
        out[size] = bytes_[code]
        return size + 1
    more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
    out[size] = bytes_[((0xF00 >> (more + 1)) & 0xFF) | (code >> (6 * more))]
    for rest in range(more):
        out[size + 1 + rest] = bytes_[0x80 | ((code >> (6 * (more - 1 - rest))) & 0x3F)]
    return size + 1 + more


@njit(nogil=True, cache=True)
def _merge(
    ids: IntArray,
    size: int,
    keys: npt.NDArray[np.uint64],
    ranks: IntArray,
    merged: IntArray,
) -> int:  # pragma: no cover - compiled
    """Merge the pair of the lowest rank, the first of them, until there is none; the new size."""
    none = np.int32(len(keys))
    # of each pair its rank, and the id that it becomes
    rank_of, merged_of = np.full(size, none, np.int32), np.empty(size, np.int32)
    for place in range(size - 1):
        slot = _slot(keys, ids[place], ids[place + 1])
        if keys[slot] != _EMPTY:
            rank_of[place], merged_of[place] = ranks[slot], merged[slot]
    while size > 1:
        lowest = none
        for place in range(size - 1):
            lowest = min(lowest, rank_of[place])
        if lowest == none:
            break
        best = 0
        while rank_of[best] != lowest:
            best += 1
        ids[best] = merged_of[best]
        size -= 1
        for place in range(best + 1, size):
            ids[place] = ids[place + 1]
            rank_of[place], merged_of[place] = rank_of[place + 1], merged_of[place + 1]
        for place in range(max(best - 1, 0), min(best + 1, size - 1)):
            slot = _slot(keys, ids[place], ids[place + 1])
            rank_of[place] = ranks[slot] if keys[slot] != _EMPTY else none
            merged_of[place] = merged[slot]
    return size
