"""Unigram tokenizers of Hugging Face folders (XLM-R, mDeBERTa, ...), encoded by a compiled Viterbi.

The tokenizers library segments 1 to 2 MB of text a second; SentencePiece is faster, but adds scores
in single precision, so that ties between segmentations fall differently. This one computes what the
tokenizers library does, in double precision and with its order of comparisons:

    texts --normalize--> code points --split at spaces--> words --trie + Viterbi--> ids

A character is normalized by itself, which is what the library's `Precompiled` normalizer does for
all but short graphemes (below 6 bytes, such as `e` with a combining accent). Texts with one of
these, with white space other than single spaces between words, or with invisible characters are
encoded by the library (`HFEncoder`). `is_supported` tells whether a tokenizer has these steps and
no others; the first texts that an encoder gets are encoded by both and compared.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.types import BoolArray, FloatArray, IntArray, LongArray

    Codes = npt.NDArray[np.uint32]

_NEW, _PLAIN, _MARK, _REPLACED, _OTHER = range(5)
"""What is known of a character: nothing, that normalization keeps it, that it is combining, that it
is replaced by others, or that texts with it are left to the library."""
_MIN_GRAPHEME_BYTES = 6
"""Longer graphemes are normalized character by character."""
_COMPARED = 100
"""Texts that are encoded by the library, too."""
_UNKNOWN_PENALTY = 10.0
"""An unknown character scores so much below the worst piece."""
_INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs")
_CHARACTER_BITS = 21
_NUM_CHARACTERS = 0x110000
_HASH = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_SPACE, _MARK_CODE = ord(" "), ord(SPACE_MARK)


def is_supported(sections: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has the steps that are computed here."""
    normalizers = _steps(sections["normalizer"], "normalizers")
    pre_tokenizers = _steps(sections["pre_tokenizer"], "pretokenizers")
    kinds = [one["type"] for one in pre_tokenizers]
    spaces = ({"Regex": " {2,}"}, {"Regex": r"\s+"})
    return (
        sections["model"]["type"] == "Unigram"
        and sections["model"]["unk_id"] is not None
        and kinds in (["Metaspace"], ["WhitespaceSplit", "Metaspace"])
        and pre_tokenizers[-1]["replacement"] == SPACE_MARK
        and pre_tokenizers[-1]["prepend_scheme"] == "always"
        and pre_tokenizers[-1].get("split", True)
        and all(
            one["type"] in ("Precompiled", "Strip")
            or (one["type"] == "Replace" and one["pattern"] in spaces and one["content"] == " ")
            for one in normalizers
        )
        and all(one["special"] for one in sections["added_tokens"])
    )


def _steps(step: Mapping[str, Any] | None, inside: str) -> list[Mapping[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, in order."""
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [one for part in step[inside] for one in _steps(part, inside)]
    return [step]


class UnigramEncoder:
    """Encodes texts to the ids of the tokenizers library, several times faster."""

    def __init__(self, folder: Path) -> None:
        """`folder` has a tokenizer that `is_supported`."""
        self._library = HFEncoder(folder)
        model = self._library.sections()["model"]
        pieces = [piece for piece, _ in model["vocab"]]
        self._scores = np.array([score for _, score in model["vocab"]], np.float64)
        self._unknown_score = float(self._scores.min()) - _UNKNOWN_PENALTY
        self._unknown = int(model["unk_id"])
        ids = {piece: number for number, piece in enumerate(pieces)}
        bytes_ = [ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
        self._bytes = np.array(bytes_ if model.get("byte_fallback") else [-1] * 256, np.int32)
        codes, lengths = _codes(pieces)
        self._keys, self._children, self._piece_of = _build_trie(codes, lengths)
        self._kinds = np.full(_NUM_CHARACTERS, _NEW, np.uint8)
        self._kinds[_SPACE] = _PLAIN
        self._replacements: dict[int, str] = {}
        self._agrees: bool | None = None

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The ids of all texts, concatenated, and the number of ids of each text."""
        if self._agrees is None:
            first = texts[:_COMPARED]
            pairs = zip(self._encode(first), self._library.encode(first), strict=True)
            self._agrees = all(np.array_equal(own, theirs) for own, theirs in pairs)
        return self._encode(texts) if self._agrees else self._library.encode(texts)

    def _encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        codes, lengths = _codes(texts)
        self._learn(codes)
        kinds, owners = self._kinds[codes], np.repeat(np.arange(len(lengths)), lengths)
        whole = np.zeros(len(lengths), np.bool_)
        whole[owners[_is_left(codes, kinds, lengths)]] = True
        whole[lengths == 0] = True
        if (kinds == _REPLACED).any():
            replaced = np.zeros(len(lengths), np.bool_)
            replaced[owners[kinds == _REPLACED]] = True
            chosen = (replaced & ~whole).tolist()
            table = self._replacements
            texts_now = [
                text.translate(table) if of else text
                for text, of in zip(texts, chosen, strict=True)
            ]
            codes, lengths = _codes(texts_now)
        return self._join(texts, codes, lengths, whole)

    def _join(
        self, texts: Sequence[str], codes: Codes, lengths: LongArray, whole: BoolArray
    ) -> tuple[IntArray, IntArray]:
        """The ids of `whole` texts by the library, of others by the Viterbi search."""
        found, counts = _segment(
            codes,
            np.where(whole, -lengths - 1, lengths),
            self._keys,
            self._children,
            self._piece_of,
            self._scores,
            self._unknown_score,
            self._unknown,
            self._bytes,
        )
        if not whole.any():
            return found, counts
        encoded, own = self._library.encode([texts[n] for n in np.flatnonzero(whole).tolist()])
        counts[whole] = own
        ids = np.empty(int(counts.sum()), np.int32)
        is_whole = np.repeat(whole, counts)
        ids[is_whole], ids[~is_whole] = encoded, found
        return ids, counts

    def _learn(self, codes: Codes) -> None:
        """Find out what normalization does to characters that have not been seen."""
        for code in np.unique(codes[self._kinds[codes] == _NEW]).tolist():
            character = chr(code)
            category = unicodedata.category(character)
            normalized = self._library.normalize(character)
            if (
                category in _INVISIBLE
                or character.isspace()
                or any(one.isspace() or one == SPACE_MARK for one in normalized)
                or not normalized
            ):
                kind = _OTHER
            elif category.startswith("M"):
                kind = _MARK if normalized == character else _OTHER
            elif normalized == character:
                kind = _PLAIN
            else:
                kind = _REPLACED
                self._replacements[code] = normalized
            self._kinds[code] = kind


def _codes(texts: Sequence[str]) -> tuple[Codes, LongArray]:
    """The code points of all texts, concatenated, and the number of each text's."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.uint32), lengths


@njit(nogil=True, cache=True)
def _is_left(
    codes: Codes, kinds: npt.NDArray[np.uint8], lengths: LongArray
) -> BoolArray:  # pragma: no cover - compiled
    """Which characters leave their text to the library."""
    left = np.zeros(len(codes), np.bool_)
    start = 0
    for length in lengths:
        end = start + length
        for place in range(start, end):
            kind = kinds[place]
            if codes[place] == _SPACE:
                at_end = place == start or place == end - 1
                left[place] = at_end or codes[place - 1] == _SPACE
            elif kind == _MARK:
                before = codes[place - 1] if place > start else _SPACE
                size = _num_bytes(before) + _num_bytes(codes[place])
                left[place] = before == _SPACE or size < _MIN_GRAPHEME_BYTES
            else:
                left[place] = kind == _OTHER
        start = end
    return left


@njit(nogil=True, cache=True)
def _num_bytes(code: int) -> int:  # pragma: no cover - compiled
    """The bytes of a character in UTF-8."""
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


@njit(nogil=True, cache=True)
def _build_trie(
    codes: Codes, lengths: LongArray
) -> tuple[npt.NDArray[np.uint64], IntArray, IntArray]:  # pragma: no cover - compiled
    """A trie of pieces: a hash table of (node, character) -> node, and the piece of each node."""
    size = 16
    while size < 2 * len(codes):
        size *= 2
    keys, children = np.full(size, _EMPTY, np.uint64), np.zeros(size, np.int32)
    piece_of = np.full(len(codes) + 1, -1, np.int32)
    num_nodes, start = 1, 0
    for number, length in enumerate(lengths):
        node = 0
        for place in range(start, start + length):
            slot, found = _find(keys, node, codes[place])
            if not found:
                keys[slot] = _key(node, codes[place])
                children[slot] = num_nodes
                num_nodes += 1
            node = children[slot]
        piece_of[node] = number
        start += length
    # a table of the size that is needed stays in the processor's cache
    needed = 16
    while needed < 2 * num_nodes:
        needed *= 2
    if needed == size:
        return keys, children, piece_of[:num_nodes]
    small_keys, small_children = np.full(needed, _EMPTY, np.uint64), np.zeros(needed, np.int32)
    for old in range(size):
        if keys[old] != _EMPTY:
            parent = np.int64(keys[old] >> np.uint64(_CHARACTER_BITS))
            character = np.uint32(keys[old] & np.uint64((1 << _CHARACTER_BITS) - 1))
            slot, _ = _find(small_keys, parent, character)
            small_keys[slot], small_children[slot] = keys[old], children[old]
    return small_keys, small_children, piece_of[:num_nodes]


@njit(nogil=True, cache=True, inline="always")
def _key(node: int | np.int64, character: int) -> np.uint64:  # pragma: no cover - compiled
    return (np.uint64(node) << np.uint64(_CHARACTER_BITS)) | np.uint64(character)


@njit(nogil=True, cache=True)
def _find(
    keys: npt.NDArray[np.uint64], node: int | np.int64, character: int
) -> tuple[np.int64, bool]:  # pragma: no cover - compiled
    """The slot of a child, and whether it is there."""
    key, mask = _key(node, character), np.uint64(len(keys) - 1)
    slot = ((key * _HASH) >> np.uint64(20)) & mask
    while keys[slot] != _EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot), keys[slot] == key


@njit(nogil=True, cache=True)
def _segment(
    codes: Codes,
    lengths: LongArray,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    byte_ids: IntArray,
) -> tuple[IntArray, IntArray]:  # pragma: no cover - compiled
    """The ids of texts, and the number of each; a text with a length of -n - 1 is passed over."""
    total = 0
    for length in lengths:
        total += max(length, 0)
    # a character has an id at most, or its bytes; a word has its space mark besides
    out = np.empty(5 * total + 2 * len(lengths) + 8, np.int32)
    counts = np.zeros(len(lengths), np.int32)
    longest = 1
    for length in lengths:
        longest = max(longest, length + 1)
    word, best = np.empty(longest, np.uint32), np.empty(longest + 1)
    begins, ids = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int32)
    written, start = 0, 0
    for number, length in enumerate(lengths):
        if length < 0:
            start += -length - 1
            continue
        end, before = start + length, written
        place = start
        while place < end:
            word[0] = _MARK_CODE
            size = 1
            while place < end and codes[place] != _SPACE:
                word[size] = codes[place]
                size += 1
                place += 1
            place += 1
            written = _best_path(
                word[:size],
                keys,
                children,
                piece_of,
                scores,
                unknown_score,
                unknown,
                byte_ids,
                best,
                begins,
                ids,
                out,
                written,
            )
        counts[number] = written - before
        start = end
    return out[:written].copy(), counts


@njit(nogil=True, cache=True)
def _best_path(
    word: Codes,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    byte_ids: IntArray,
    best: FloatArray,
    begins: LongArray,
    ids: IntArray,
    out: IntArray,
    written: int,
) -> int:  # pragma: no cover - compiled
    """Write the ids of a word's best segmentation."""
    _search(word, keys, children, piece_of, scores, unknown_score, unknown, best, begins, ids)
    # from the last piece back to the first, then turned around
    first, end, in_unknown = written, len(word), False
    while end > 0:
        begin = begins[end]
        if ids[end] != unknown:
            out[written] = ids[end]
            written += 1
            in_unknown = False
        elif byte_ids[0] >= 0:
            written = _write_bytes(word[begin], byte_ids, out, written)
        elif not in_unknown:  # neighboring unknown characters are one token
            out[written] = unknown
            written += 1
            in_unknown = True
        end = begin
    last = written - 1
    while first < last:
        out[first], out[last] = out[last], out[first]
        first, last = first + 1, last - 1
    return written


@njit(nogil=True, cache=True)
def _search(
    word: Codes,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    scores: FloatArray,
    unknown_score: float,
    unknown: int,
    best: FloatArray,
    begins: LongArray,
    ids: IntArray,
) -> None:  # pragma: no cover - compiled
    """Find for each place of a word the best piece that ends there; of equal ones, the first."""
    size = len(word)
    best[0], begins[: size + 1] = 0.0, -1
    for begin in range(size):
        has_single, node = False, 0
        for place in range(begin, size):
            slot, found = _find(keys, node, word[place])
            if not found:
                break
            node = children[slot]
            piece = piece_of[node]
            if piece < 0:
                continue
            end, score = place + 1, scores[piece] + best[begin]
            if begins[end] < 0 or score > best[end]:
                best[end], begins[end], ids[end] = score, begin, piece
            has_single = has_single or place == begin
        if not has_single:
            score = unknown_score + best[begin]
            if begins[begin + 1] < 0 or score > best[begin + 1]:
                best[begin + 1], begins[begin + 1], ids[begin + 1] = score, begin, unknown


@njit(nogil=True, cache=True)
def _write_bytes(
    code: int, byte_ids: IntArray, out: IntArray, written: int
) -> int:  # pragma: no cover - compiled
    """Write the ids of a character's bytes in UTF-8, the last first."""
    size = _num_bytes(code)
    rest = np.int64(code)
    for number in range(size):
        if number == size - 1:
            lead = 0 if size == 1 else (0xF00 >> size) & 0xFF
            out[written] = byte_ids[lead | rest]
        else:
            out[written] = byte_ids[0x80 | (rest & 0x3F)]
            rest >>= 6
        written += 1
    return written
