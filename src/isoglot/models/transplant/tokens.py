"""A tokenizer's tokens as surface forms, and the roles of its special tokens.

A surface form is a token's text and whether it begins a word. SentencePiece marks tokens that begin
a word (`▁house`); byte-level BPE marks them too and writes bytes as letters (`Ġhouse`, `ÃŃ`);
WordPiece marks tokens that do not begin a word (`##ing`). XLM's BPE marks the end of a word
(`house</w>`): most such tokens are whole words, and all are taken to begin one. Tokens of two
tokenizers match where their surface forms are equal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from isoglot.corpus.tokenization.vocabulary import SPACE_MARK, derive_vocabulary, open_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.types import Vocabulary

# roles that replace each other: BERT has no <s>, some models have no [CLS]
_ROLES = {
    "cls": ("cls", "bos"),
    "bos": ("bos", "cls"),
    "sep": ("sep", "eos"),
    "eos": ("eos", "sep"),
    "pad": ("pad",),
    "mask": ("mask",),
    "unk": ("unk",),
}


class TokenizerTokens:
    """The tokens of one tokenizer."""

    def __init__(self, tokenizer: Any, folder: Path) -> None:
        """`tokenizer` is a fast transformers tokenizer; `folder` is for messages."""
        self.tokenizer = tokenizer
        self.folder = folder
        self.vocabulary: Vocabulary = derive_vocabulary(tokenizer, folder)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        self.content: Any = json.loads(tokenizer.backend_tokenizer.to_str())
        self.format: TokenFormat = token_format(self.content)
        self.special = set(self.vocabulary.special)
        self.unknown: int | None = tokenizer.unk_token_id
        self._added = {token["content"] for token in self.content["added_tokens"]}

    @classmethod
    def open(cls, folder: Path) -> TokenizerTokens:
        """The tokens of a folder's tokenizer."""
        return cls(open_tokenizer(folder), folder)

    @cached_property
    def by_id(self) -> list[tuple[int, str]]:
        """Every id and its token, ascending."""
        return sorted((index, token) for token, index in self.ids.items())

    def surface(self, token: str) -> SurfaceForm:
        """The surface form of an ordinary token; an added token is a word as it is."""
        if token in self._added and not token.startswith(self.format.mark or "\0"):
            return SurfaceForm(token, starts_word=True)
        return surface_form(token, self.format)

    def with_role(self, role: str) -> int | None:
        """The id of the special token with a role, or with one that replaces it."""
        for name in _ROLES[role]:
            index: int | None = getattr(self.tokenizer, f"{name}_token_id")
            if index is not None:
                return index
        return None

    def roles(self) -> dict[int, list[str]]:
        """The special tokens that have roles, and which."""
        found: dict[int, list[str]] = {}
        for role in _ROLES:
            index = getattr(self.tokenizer, f"{role}_token_id")
            if index is not None:
                found.setdefault(index, []).append(role)
        return found

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts, without special tokens around them or inside."""
        encoded = self._plain_tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def subwords(self, forms: Sequence[SurfaceForm]) -> list[list[int]]:
        """The ids into which this tokenizer splits surface forms; empty for an unknown one."""
        texts = [self.as_text(form) if is_text(form.text) else "" for form in forms]
        split = [[] if self.unknown in ids else ids for ids in self.encode(texts)]
        # SentencePiece marks every text as a word; a separate mark is no part of a word's inside
        mark = self.ids.get(self.format.mark)
        return [
            ids[1:] if ids and ids[0] == mark and not form.starts_word else ids
            for ids, form in zip(split, forms, strict=True)
        ]

    def as_text(self, form: SurfaceForm) -> str:
        """The text to encode for a word, or for a subword inside one."""
        # only byte-level BPE sees the space before a word; the others mark every text's beginning
        space = " " if form.starts_word and self.format.convention == "bytes" else ""
        return space + form.text

    @cached_property
    def _plain_tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        return tokenizer


class SurfaceForm(NamedTuple):
    """A token as text. Bytes that are no whole character are lone surrogates in it."""

    text: str
    starts_word: bool


class TokenFormat(NamedTuple):
    """How a tokenizer writes its tokens."""

    convention: Literal["sentencepiece", "bytes", "wordpiece", "end_marks", "words"]
    """How it marks words; `words`: not at all, each of its tokens is one."""
    mark: str
    """The prefix of a token that begins a word, that of one that does not, or a word's suffix."""
    byte_fallback: bool
    """Are `<0x00>` to `<0xFF>` bytes?"""


def token_format(content: Any) -> TokenFormat:
    """How the tokenizer of this tokenizer.json writes its tokens."""
    model = content["model"]
    if model["type"] == "WordPiece":
        return TokenFormat("wordpiece", model["continuing_subword_prefix"], byte_fallback=False)
    if '"ByteLevel"' in json.dumps(content["pre_tokenizer"]):
        return TokenFormat("bytes", "Ġ", byte_fallback=False)
    if end := model.get("end_of_word_suffix"):
        return TokenFormat("end_marks", end, byte_fallback=False)
    vocabulary = model["vocab"]
    # Unigram lists pairs of a token and its score, the others map tokens to ids
    tokens = (entry if isinstance(entry, str) else entry[0] for entry in vocabulary)
    if any(token.startswith(SPACE_MARK) for token in tokens):
        byte_fallback = bool(model.get("byte_fallback"))
        return TokenFormat("sentencepiece", SPACE_MARK, byte_fallback=byte_fallback)
    return TokenFormat("words", "", byte_fallback=False)


_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def surface_form(token: str, written: TokenFormat) -> SurfaceForm:
    """The surface form of an ordinary token."""
    marked = token.startswith(written.mark)
    text = token[len(written.mark) :] if marked else token
    match written.convention:
        case "wordpiece":
            return SurfaceForm(text, not marked)
        case "bytes":
            return SurfaceForm(_from_byte_letters(text), marked)
        case "sentencepiece":
            byte = _BYTE.fullmatch(token) if written.byte_fallback else None
            if byte:
                return SurfaceForm(_from_bytes(bytes.fromhex(byte[1])), starts_word=False)
            return SurfaceForm(text.replace(SPACE_MARK, " "), marked)
        case "end_marks":
            return SurfaceForm(token.removesuffix(written.mark), token.endswith(written.mark))
        case "words":
            return SurfaceForm(text, starts_word=True)


def is_byte_token(token: str, written: TokenFormat) -> bool:
    """Is this SentencePiece's `<0x41>`, the fallback for characters without a token?"""
    return written.byte_fallback and _BYTE.fullmatch(token) is not None


def nfkc(text: str) -> str:
    """The text in Unicode's form NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def casefolded(text: str) -> str:
    """The text in NFKC, without case."""
    return nfkc(nfkc(text).casefold())


def is_text(text: str) -> bool:
    """Is it not empty, and free of bytes that are no character?"""
    return bool(text) and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable Latin-1 is itself, the other bytes follow U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + place): byte for place, byte in enumerate(others)}


BYTE_OF_LETTER = _byte_alphabet()
"""The byte of each letter of a byte-level token."""


def _from_byte_letters(letters: str) -> str:
    # an added token may hold letters outside the alphabet: it is plain text
    if not all(letter in BYTE_OF_LETTER for letter in letters):
        return letters
    return _from_bytes(bytes(BYTE_OF_LETTER[letter] for letter in letters))


def _from_bytes(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
