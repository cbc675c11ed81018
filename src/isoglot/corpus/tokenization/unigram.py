"""Unigram tokenizers of Hugging Face folders (XLM-R, mDeBERTa, ...), encoded by a compiled Viterbi.

The tokenizers library segments 1 to 2 MB of text a second; SentencePiece is faster, but adds scores
in single precision, so that ties between segmentations fall differently. This one computes what the
tokenizers library does (`viterbi`):

    texts --split at spaces--> words --normalize--> code points --trie + Viterbi--> ids

A word is encoded once, and then looked up (`words`). A character is normalized by itself, which is
what the library's `Precompiled` normalizer does for all but short graphemes (below 6 bytes, such as
`e` with a combining accent): words with one of these, or with joiners, are normalized by it. Texts
with white space other than single spaces between words, or with control characters, are encoded by
the library (`HFEncoder`). `is_supported` tells whether a tokenizer has these steps and no others.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from typing_extensions import override

from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder, flat_steps
from isoglot.corpus.tokenization.viterbi import build_trie, num_bytes, segment
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK
from isoglot.corpus.tokenization.word_table import Words, codes_of
from isoglot.corpus.tokenization.words import WordEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.corpus.tokenization.word_table import Codes
    from isoglot.types import BoolArray, IntArray, LongArray

_NEW, _PLAIN, _MARK, _REPLACED, _ASKED, _LEFT = range(6)
"""What is known of a character: nothing, that normalization keeps it, that it is combining, that it
is replaced by others, that the library normalizes words with it, or that it encodes whole texts."""
_MIN_GRAPHEME_BYTES = 6
"""Longer graphemes are normalized character by character."""
_UNKNOWN_PENALTY = 10.0
"""An unknown character scores so much below the worst piece."""
_UNSAFE = ("Cc", "Cn", "Co", "Cs")
"""Categories of control characters and of those that are not assigned."""
_JOINING = "\u0e33\u0eb3\uff9e\uff9f"
"""Letters that are of one grapheme with the character before."""
_NUM_CHARACTERS = 0x110000


def is_supported(sections: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has the steps that are computed here."""
    normalizers = flat_steps(sections["normalizer"], "normalizers")
    pre_tokenizers = flat_steps(sections["pre_tokenizer"], "pretokenizers")
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


class UnigramEncoder(WordEncoder):
    """Encodes texts to the ids of the tokenizers library, several times faster."""

    def __init__(self, folder: Path) -> None:
        """`folder` has a tokenizer that `is_supported`."""
        super().__init__(HFEncoder(folder))
        # not as the file writes them: the library rounds some scores differently from Python
        model = self._library.sections()["model"]
        pieces = [piece for piece, _ in model["vocab"]]
        self._scores = np.array([score for _, score in model["vocab"]], np.float64)
        self._unknown_score = float(self._scores.min()) - _UNKNOWN_PENALTY
        self._unknown = int(model["unk_id"])
        ids = {piece: number for number, piece in enumerate(pieces)}
        bytes_ = [ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
        self._bytes = np.array(bytes_ if model.get("byte_fallback") else [-1] * 256, np.int32)
        codes, lengths = codes_of(pieces)
        self._keys, self._children, self._piece_of = build_trie(codes, lengths)
        self._kinds = np.full(_NUM_CHARACTERS, _NEW, np.uint8)
        self._rewritten = np.zeros(0, np.uint32)
        # of character c, from begins[2 * c] to begins[2 * c + 1]
        self._begins = np.zeros(2 * _NUM_CHARACTERS, np.int32)

    @override
    def encode_words(self, words: Words) -> tuple[IntArray, IntArray, BoolArray]:
        codes, lengths = words.codes, words.lengths
        left, asked, rewritten, has_new = _examine(codes, lengths, self._kinds)
        if has_new:
            self._learn(codes)
            left, asked, rewritten, _ = _examine(codes, lengths, self._kinds)
        if rewritten:
            codes, lengths = _rewrite(codes, lengths, self._kinds, self._rewritten, self._begins)
        if asked.any():
            spelled, normalized = words.texts(), Words(codes, lengths, words.is_first).texts()
            for number in np.flatnonzero(asked).tolist():
                now = self._normalized(spelled[number])
                left[number] = now is None
                normalized[number] = now or ""
            codes, lengths = codes_of(normalized)
        ids, counts = segment(
            codes,
            np.where(left, -lengths - 1, lengths),
            self._keys,
            self._children,
            self._piece_of,
            self._scores,
            self._unknown_score,
            self._unknown,
            self._bytes,
        )
        return ids, counts, left

    def _normalized(self, word: str) -> str | None:
        """A word as the library normalizes it; None where its neighbors may make a difference."""
        # a combining or joining character could be joined with a space
        if unicodedata.category(word[0])[0] in "CM" or unicodedata.category(word[-1])[0] == "C":
            return None
        now = self._library.normalize(word)
        return None if not now or any(map(_is_space, now)) else now

    def _learn(self, codes: Codes) -> None:
        """Find out what normalization does to characters that have not been seen."""
        for code in np.unique(codes[self._kinds[codes] == _NEW]).tolist():
            character = chr(code)
            category = unicodedata.category(character)
            normalized = "" if category in _UNSAFE else self._library.normalize(character)
            if category in _UNSAFE or any(map(_is_space, character + normalized)):
                kind = _LEFT
            elif category == "Cf" or character in _JOINING or not normalized:
                kind = _ASKED
            elif category.startswith("M"):
                kind = _MARK if normalized == character else _ASKED
            elif normalized == character:
                kind = _PLAIN
            else:
                kind = _REPLACED
                now, _ = codes_of([normalized])
                self._begins[2 * code] = len(self._rewritten)
                self._rewritten = np.concatenate([self._rewritten, now])
                self._begins[2 * code + 1] = len(self._rewritten)
            self._kinds[code] = kind


def _is_space(character: str) -> bool:
    return character.isspace() or character == SPACE_MARK


@njit(nogil=True, cache=True)
def _examine(
    codes: Codes, lengths: LongArray, kinds: npt.NDArray[np.uint8]
) -> tuple[BoolArray, BoolArray, bool, bool]:  # pragma: no cover - compiled
    """Which words are left, which asked about; whether a character is replaced, or is new."""
    left, asked = np.zeros(len(lengths), np.bool_), np.zeros(len(lengths), np.bool_)
    rewritten, has_new, start = False, False, 0
    for word, length in enumerate(lengths):
        for place in range(start, start + length):
            kind = kinds[codes[place]]
            if kind == _MARK:
                before = codes[place - 1] if place > start else np.uint32(0)
                asked[word] |= num_bytes(before) + num_bytes(codes[place]) < _MIN_GRAPHEME_BYTES
                asked[word] |= place == start
            left[word] |= kind == _LEFT
            asked[word] |= kind == _ASKED
            rewritten |= kind == _REPLACED
            has_new |= kind == _NEW
        start += length
    asked &= ~left
    return left, asked, rewritten, has_new


@njit(nogil=True, cache=True)
def _rewrite(
    codes: Codes,
    lengths: LongArray,
    kinds: npt.NDArray[np.uint8],
    rewritten: Codes,
    begins: IntArray,
) -> tuple[Codes, LongArray]:  # pragma: no cover - compiled
    """The words with all characters that normalization replaces replaced."""
    total = 0
    for code in codes:
        total += begins[2 * code + 1] - begins[2 * code] if kinds[code] == _REPLACED else 1
    now, now_lengths = np.empty(total, np.uint32), np.empty(len(lengths), np.int64)
    written, start = 0, 0
    for word, length in enumerate(lengths):
        before = written
        for code in codes[start : start + length]:
            if kinds[code] == _REPLACED:
                for place in range(begins[2 * code], begins[2 * code + 1]):
                    now[written] = rewritten[place]
                    written += 1
            else:
                now[written] = code
                written += 1
        now_lengths[word] = written - before
        start += length
    return now, now_lengths
