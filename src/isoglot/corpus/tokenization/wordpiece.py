"""WordPiece tokenizers of Hugging Face folders (mBERT, ...): the compiled greedy search.

    word --split off CJK characters and punctuation--> pre-tokens --longest pieces first--> ids

What a character does to a word is asked of the library, once for each character: it stays, or it
stands alone (punctuation, CJK characters). Words with any other (upper case where text is lowered,
control characters) are encoded by the library (`hf_words`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from typing_extensions import override

from isoglot.corpus.tokenization.hf_words import ASKED, HFWordEncoder, splits_at_spaces
from isoglot.corpus.tokenization.viterbi import build_trie, find_child
from isoglot.corpus.tokenization.word_table import codes_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.corpus.tokenization.word_table import Codes, Words
    from isoglot.types import BoolArray, IntArray, LongArray

_INSIDE, _ALONE = 2, 3
"""A character that is part of a word, and one that is a word of its own."""


def is_supported(sections: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has the steps that are computed here."""
    normalizer, pre_tokenizer = sections["normalizer"], sections["pre_tokenizer"]
    return (
        sections["model"]["type"] == "WordPiece"
        and (pre_tokenizer or {}).get("type") == "BertPreTokenizer"
        and (normalizer or {"type": "BertNormalizer"})["type"] == "BertNormalizer"
        and splits_at_spaces(sections)
        and sections["model"]["unk_token"] in sections["model"]["vocab"]
    )


class WordPieceEncoder(HFWordEncoder):
    """Encodes each distinct word once, most of them by compiled code."""

    def __init__(self, folder: Path) -> None:
        """`folder` has a tokenizer that `is_supported`."""
        super().__init__(folder, marks_first=False)
        model = self._library.sections()["model"]
        vocabulary: dict[str, int] = model["vocab"]
        self._unknown = vocabulary[model["unk_token"]]
        self._max_characters = int(model["max_input_chars_per_word"])
        self._prefix, _ = codes_of([model["continuing_subword_prefix"]])
        self._ids_of_pieces = np.array([*vocabulary.values()], np.int32)
        self._trie = build_trie(*codes_of([*vocabulary]))

    @override
    def encode_words(self, words: Words) -> tuple[IntArray, IntArray, BoolArray]:
        self.learn_characters(words.codes)
        ids, counts, asked = _encode(
            words.codes,
            words.lengths,
            self._kinds,
            *self._trie,
            self._ids_of_pieces,
            self._prefix,
            self._unknown,
            self._max_characters,
        )
        return self.encode_others(words, ids, counts, asked)

    @override
    def kind_of(self, character: str) -> int:
        normalized = self._library.normalize(f"a{character}a")
        if normalized not in (f"a{character}a", f"a {character} a"):
            return ASKED
        match self._library.pre_tokenize(normalized):
            case ["a", found, "a"] if found == character:
                return _ALONE
            case [_]:
                return _INSIDE
        return ASKED


@njit(nogil=True, cache=True)
def _encode(
    codes: Codes,
    lengths: LongArray,
    kinds: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    ids_of_pieces: IntArray,
    prefix: Codes,
    unknown: int,
    max_characters: int,
) -> tuple[IntArray, IntArray, BoolArray]:  # pragma: no cover - compiled
    """The ids of words, the number of each, and which words the library encodes."""
    ids, counts = np.empty(len(codes), np.int32), np.zeros(len(lengths), np.int32)
    asked = np.zeros(len(lengths), np.bool_)
    inside = 0  # the node of pieces that continue a word
    for code in prefix:
        slot, found = find_child(keys, inside, code)
        if not found:
            inside = -1
            break
        inside = children[slot]
    written, start = 0, 0
    for word, length in enumerate(lengths):
        end, before, begin = start + length, written, start
        for place in range(start, end):
            asked[word] |= kinds[codes[place]] == ASKED
        while begin < end and not asked[word]:
            stop = begin + 1
            if kinds[codes[begin]] == _INSIDE:
                while stop < end and kinds[codes[stop]] == _INSIDE:
                    stop += 1
            written = _pieces(
                codes[begin:stop] if stop - begin <= max_characters else codes[:0],
                keys,
                children,
                piece_of,
                ids_of_pieces,
                inside,
                unknown,
                ids,
                written,
            )
            begin = stop
        counts[word] = written - before
        start = end
    return ids[:written], counts, asked


@njit(nogil=True, cache=True)
def _pieces(
    codes: Codes,
    keys: npt.NDArray[np.uint64],
    children: IntArray,
    piece_of: IntArray,
    ids_of_pieces: IntArray,
    inside: int,
    unknown: int,
    ids: IntArray,
    written: int,
) -> int:  # pragma: no cover - compiled
    """Write the ids of a pre-token's longest pieces; the unknown one where a part has no piece."""
    first, begin = written, 0
    while begin < len(codes):
        node, size, piece = 0 if begin == 0 else inside, 0, -1
        for place in range(begin, len(codes) if node >= 0 else begin):
            slot, found = find_child(keys, node, codes[place])
            if not found:
                break
            node = children[slot]
            if piece_of[node] >= 0:
                piece, size = piece_of[node], place + 1 - begin
        if piece < 0:
            break
        ids[written] = ids_of_pieces[piece]
        written, begin = written + 1, begin + size
    if begin < len(codes) or written == first:
        ids[first] = unknown
        return first + 1
    return written
