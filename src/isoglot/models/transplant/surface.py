"""What a token spells, whatever its tokenizer's way of writing it.

Reads an open fast tokenizer; gives each token as a `Surface`: its text, and whether it begins a
word. SentencePiece marks beginnings (`▁house`), byte-level BPE marks them and writes bytes as
letters (`Ġhouse`, `ÃŃ`), WordPiece marks the pieces that do not begin one (`##ing`). BPE of XLM's
kind marks the ends (`house</w>`): most such tokens are whole words, and all are taken for one. Two
tokens of different tokenizers mean the same if their surfaces are equal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Literal, NamedTuple

from isoglot.corpus.clean import SPACE_MARK

Convention = Literal["sentencepiece", "bytes", "wordpiece", "ends", "words"]
"""How a tokenizer marks words; `words`: it does not, each of its tokens is one."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Surface(NamedTuple):
    """A token as text. Bytes that are no character of their own are lone surrogates in it."""

    text: str
    starts: bool
    """Does it begin a word?"""


class Written(NamedTuple):
    """How a tokenizer writes its tokens."""

    convention: Convention
    mark: str
    """What a token of a new word begins with, or a continuing piece, or what a word ends with."""
    byte_pieces: bool
    """Are `<0x00>` to `<0xFF>` bytes?"""


def how_written(content: Any) -> Written:
    """How the tokenizer of this tokenizer.json writes its tokens."""
    model = content["model"]
    if model["type"] == "WordPiece":
        return Written("wordpiece", model["continuing_subword_prefix"], byte_pieces=False)
    if '"ByteLevel"' in json.dumps(content["pre_tokenizer"]):
        return Written("bytes", "Ġ", byte_pieces=False)
    if end := model.get("end_of_word_suffix"):
        return Written("ends", end, byte_pieces=False)
    vocabulary = model["vocab"]
    # Unigram lists pairs of a piece and its score, the others map tokens to ids
    tokens = (entry if isinstance(entry, str) else entry[0] for entry in vocabulary)
    if any(token.startswith(SPACE_MARK) for token in tokens):
        byte_pieces = bool(model.get("byte_fallback"))
        return Written("sentencepiece", SPACE_MARK, byte_pieces=byte_pieces)
    return Written("words", "", byte_pieces=False)


def surface(token: str, written: Written) -> Surface:
    """What an ordinary token spells."""
    marked = token.startswith(written.mark)
    text = token[len(written.mark) :] if marked else token
    match written.convention:
        case "wordpiece":
            return Surface(text, not marked)
        case "bytes":
            return Surface(_from_byte_letters(text), marked)
        case "sentencepiece":
            byte = _BYTE.fullmatch(token) if written.byte_pieces else None
            if byte:
                return Surface(_from_bytes(bytes.fromhex(byte[1])), starts=False)
            return Surface(text.replace(SPACE_MARK, " "), marked)
        case "ends":
            return Surface(token.removesuffix(written.mark), token.endswith(written.mark))
        case "words":
            return Surface(text, starts=True)


def is_byte_piece(token: str, written: Written) -> bool:
    """Is this SentencePiece's `<0x41>`, the fallback for characters without a piece?"""
    return written.byte_pieces and _BYTE.fullmatch(token) is not None


def composed(text: str) -> str:
    """The text in Unicode's compatible, composed form (NFKC)."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def folded(text: str) -> str:
    """The text composed and without case."""
    return composed(composed(text).casefold())


def is_text(text: str) -> bool:
    """Is it more than nothing, and free of bytes that are no character?"""
    return bool(text) and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _letters_of_bytes() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable Latin-1 stands for itself, the rest follows U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + place): byte for place, byte in enumerate(others)}


BYTE_OF_LETTER = _letters_of_bytes()
"""The byte that each letter of a byte-level token stands for."""


def _from_byte_letters(letters: str) -> str:
    # a token that was added by hand may hold letters outside the alphabet: it is plain text
    if not all(letter in BYTE_OF_LETTER for letter in letters):
        return letters
    return _from_bytes(bytes(BYTE_OF_LETTER[letter] for letter in letters))


def _from_bytes(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
