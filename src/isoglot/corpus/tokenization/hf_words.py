"""Any tokenizer of the tokenizers library that splits at spaces, encoded by words (`words`).

WordPiece (mBERT), byte-level BPE (GPT-2's, RoBERTa's and ModernBERT's rule; Llama 3's, EuroBERT's)
and others: the model sees one pre-token at a time, and no pre-token goes beyond a space inside the
text. `splits_at_spaces` looks at every step of tokenizer.json:

- Normalizers change characters, not spaces. Composition (NFC, NFKC) never reaches over a space.
- A pre-tokenizer that drops spaces does not see how many there are. One that keeps the space before
  a word (`ĠWord`) matches at most that space and the word after it, since cleaned text has single
  spaces; texts with any other white space are left to the library.
- Where a word holds a word that was added to the vocabulary, its texts are left to the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder, flat_steps
from isoglot.corpus.tokenization.word_table import Words
from isoglot.corpus.tokenization.words import WordEncoder, merge_ids

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isoglot.corpus.tokenization.word_table import Codes
    from isoglot.types import BoolArray, IntArray

_BY_CHARACTER = {"NFC", "NFD", "Lowercase"}
"""Normalizers that neither remove characters nor make spaces."""
_WITH_SPACES = {*_BY_CHARACTER, "NFKC", "NFKD", "StripAccents", "BertNormalizer"}
"""Normalizers that may, which is no matter where a pre-tokenizer drops all spaces."""
_DROPPING = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
"""Pre-tokenizers that drop spaces."""
_INSIDE = {"Punctuation", "Digits"}
"""Pre-tokenizers that split further; a space is no punctuation."""
_NEW, ASKED = 0, 1
"""Kinds of characters: not seen yet; the library encodes words with it."""
_NUM_CHARACTERS = 0x110000
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_PATTERNS = {
    # GPT-2, as a pattern rather than as a type
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    # Llama 3 and EuroBERT; Qwen 2
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
}
"""Patterns of pre-tokens that begin with the space before a word, and have no space inside."""


def splits_at_spaces(sections: Mapping[str, Any]) -> bool:
    """Whether the ids of a text are those of its words, by the steps of a tokenizer.json."""
    normalizers = {one["type"] for one in flat_steps(sections["normalizer"], "normalizers")}
    steps = flat_steps(sections["pre_tokenizer"], "pretokenizers")
    added = [one["content"] for one in sections["added_tokens"] if not one["special"]]
    if sections["model"].get("dropout"):
        return False
    if steps and steps[0]["type"] in _DROPPING:
        return (
            normalizers <= _WITH_SPACES
            and all(one["type"] in _DROPPING | _INSIDE for one in steps)
            and not any(" " in content for content in added)
        )
    return (
        normalizers <= _BY_CHARACTER
        and _keeps_spaces(steps)
        # several spaces, as in ModernBERT's vocabulary, are in no text that is divided into words
        and not any(" " in content and "  " not in content for content in added)
    )


def _keeps_spaces(steps: list[Mapping[str, Any]]) -> bool:
    """Whether pre-tokens are words (or parts of words) with the space before them."""
    match [one["type"] for one in steps]:
        case ["ByteLevel"]:
            return bool(steps[0]["use_regex"])
        case ["Split", "ByteLevel"]:
            split = steps[0]
            return (
                split["pattern"].get("Regex") in _PATTERNS
                and split["behavior"] == "Isolated"
                and not split["invert"]
            )
    return False


class HFWordEncoder(WordEncoder):
    """Encodes each distinct word once with the tokenizers library.

    Subclasses encode most words by compiled code. They know what the library does with a character
    (`kind_of`), and leave words with other characters to `encode_others`.
    """

    def __init__(self, folder: Path, *, marks_first: bool = True) -> None:
        """`folder` has a tokenizer that `splits_at_spaces`."""
        library = HFEncoder(folder)
        super().__init__(library, marks_first=marks_first)
        added = [one for one in library.sections()["added_tokens"] if not one["special"]]
        self._added = [one["id"] for one in added]
        self._kinds = np.full(_NUM_CHARACTERS, _NEW, np.uint8)
        for content in (one["content"] for one in added):
            # a word with the first character of one may hold all of it
            for character in {content[0], library.normalize(content)[:1] or content[0]}:
                self._kinds[ord(character)] = ASKED

    @override
    def encode_words(self, words: Words) -> tuple[IntArray, IntArray, BoolArray]:
        spelled = words.texts()
        # a word that white space other than single spaces divides is none
        left = np.fromiter((word.split() != [word] for word in spelled), np.bool_, len(spelled))
        asked = [
            f" {word}" if self._table.marks_first and not is_first else word
            for word, is_first in zip(spelled, words.is_first.tolist(), strict=True)
        ]
        ids, counts = self._library.encode(asked)
        if self._added:
            owners = np.repeat(np.arange(len(asked)), counts)
            left[owners[np.isin(ids, self._added)]] = True
        return ids, counts, left

    def kind_of(self, character: str) -> int:
        """What the library does with a character (2 or more), or `ASKED`."""
        del character
        return ASKED

    def learn_characters(self, codes: Codes) -> None:
        """Fills in the kinds of characters that are new."""
        for code in np.unique(codes[self._kinds[codes] == _NEW]).tolist():
            safe = not chr(code).isspace() and not 0xD800 <= code < 0xE000
            self._kinds[code] = self.kind_of(chr(code)) if safe else ASKED

    def encode_others(
        self, words: Words, ids: IntArray, counts: IntArray, asked: BoolArray
    ) -> tuple[IntArray, IntArray, BoolArray]:
        """The ids of all words, given those of words that are not `asked` about."""
        if not asked.any():
            return ids, counts, np.zeros(len(counts), np.bool_)
        chosen = words.codes[np.repeat(asked, words.lengths)]
        theirs, their_counts, their_left = HFWordEncoder.encode_words(
            self, Words(chosen, words.lengths[asked], words.is_first[asked])
        )
        left = np.zeros(len(counts), np.bool_)
        left[asked], counts[asked] = their_left, their_counts
        return merge_ids(ids, theirs, asked, counts), counts, left
