"""Unigram tokenizers of Hugging Face folders (XLM-R, mDeBERTa, ...), encoded by a compiled Viterbi.

The tokenizers library segments 1 to 2 MB of text a second; SentencePiece is faster, but adds scores
in single precision, so that ties between segmentations fall differently. This one computes what the
tokenizers library does (`viterbi`):

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
from isoglot.corpus.tokenization.viterbi import SPACE, build_trie, num_bytes, segment
from isoglot.corpus.tokenization.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.corpus.tokenization.viterbi import Codes
    from isoglot.types import BoolArray, IntArray, LongArray

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
_NUM_CHARACTERS = 0x110000


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
        self._keys, self._children, self._piece_of = build_trie(codes, lengths)
        self._kinds = np.full(_NUM_CHARACTERS, _NEW, np.uint8)
        self._kinds[SPACE] = _PLAIN
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
        found, counts = segment(
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
            if codes[place] == SPACE:
                at_end = place == start or place == end - 1
                left[place] = at_end or codes[place - 1] == SPACE
            elif kind == _MARK:
                before = codes[place - 1] if place > start else SPACE
                size = num_bytes(before) + num_bytes(codes[place])
                left[place] = before == SPACE or size < _MIN_GRAPHEME_BYTES
            else:
                left[place] = kind == _OTHER
        start = end
    return left
