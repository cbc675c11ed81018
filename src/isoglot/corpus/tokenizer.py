"""Any Hugging Face fast tokenizer folder: its fingerprint, its vocabulary, its ids.

Tokenizers come as their users have them (SentencePiece, WordPiece, byte-level BPE); what the rest
of Isoglot needs to know of one is an `isoglot.types.Vocabulary`, derived here and kept beside the
tokenizer as vocabulary.npz, so that training need not ask transformers for it again.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.corpus.clean import SPACE_MARK
from isoglot.corpus.disk import writing
from isoglot.errors import CorpusError
from isoglot.types import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from isoglot.types import BoolArray, IntArray

VOCABULARY_FILE = "vocabulary.npz"
TOKENIZER_FILE = "tokenizer.json"

TEXT_TO_IDS = ("added_tokens", "normalizer", "pre_tokenizer", "model")
"""The sections of tokenizer.json that turn text into ids; others are about decoding and padding."""

NO_SPACE_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x9FFF),  # Han
)
"""First and last characters of the scripts that are written without spaces between words."""
NO_SPACES = re.compile(f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in NO_SPACE_RANGES)}]")
"""A letter of one of them."""


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, as transformers opens it; nothing is fetched or executed."""
    from transformers import AutoTokenizer

    if not folder.is_dir():
        raise CorpusError(f"{folder}: there is no such folder. Name a Hugging Face tokenizer's.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # transformers raises many kinds, all about the folder
        reason = str(error).strip().split("\n")[0]
        raise CorpusError(
            f"{folder}: does not hold a tokenizer that transformers can open ({reason})."
        ) from error
    if not tokenizer.is_fast:
        raise CorpusError(
            f"{folder}: its tokenizer is written in Python only. Save a fast version of it "
            f"(a {TOKENIZER_FILE}) in the folder."
        )
    # beside a model's config.json, transformers makes one up that knows nothing but special tokens
    names = {TOKENIZER_FILE, *tokenizer.vocab_files_names.values()}
    if not any((folder / name).is_file() for name in names):
        raise CorpusError(
            f"{folder}: holds no tokenizer ({' or '.join(sorted(names))}). Copy the files of the "
            "model's tokenizer into it, or name the folder that has them."
        )
    return tokenizer


def fingerprint_of_tokenizer(
    tokenizer: Any, vocabulary: Vocabulary, pretokenize: Mapping[str, str] | None = None
) -> str:
    """SHA-256 of all that turns text into ids; not of dates, padding or the library's version.

    `pretokenize` says how the text of each language is divided into words first.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    canonical: dict[str, Any] = {
        "sections": {name: content.get(name) for name in TEXT_TO_IDS},
        "special": [vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.mask],
    }
    if pretokenize:
        canonical["pretokenize"] = dict(pretokenize)
    return sha256(json.dumps(canonical, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def vocabulary_of(folder: Path) -> Vocabulary:
    """What batching needs to know of the tokenizer of any folder."""
    return derive_vocabulary(open_tokenizer(folder), folder)


def save_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Keeps the vocabulary in the tokenizer's folder."""
    path = folder / VOCABULARY_FILE
    with writing(path):
        np.savez(
            path,
            ids=[vocabulary.size, vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.mask],
            special=vocabulary.special,
            word_starts=vocabulary.word_starts,
        )


def load_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary kept in a tokenizer's folder."""
    with np.load(folder / VOCABULARY_FILE, allow_pickle=False) as arrays:
        size, cls, sep, pad, mask = arrays["ids"].tolist()
        return Vocabulary(
            size=size,
            cls=cls,
            sep=sep,
            pad=pad,
            mask=mask,
            special=tuple(arrays["special"].tolist()),
            word_starts=arrays["word_starts"],
        )


class Encoder:
    """Turns sentences into ids, many at a time, without special tokens.

    A text that merely spells a special token (`<mask>`) is text like any other.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is the tokenizer folder of a corpus."""
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """All ids in a row, and how many belong to each text."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return flatten([encoding.ids for encoding in encoded])

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """For each text its ids, and the characters [start, end) that each of them stands for."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encoded]


def flatten(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """All ids of the rows one after the other, and the length of each row."""
    lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
    ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(lengths.sum()))
    return ids, lengths


def derive_vocabulary(tokenizer: Any, folder: Path) -> Vocabulary:
    """What batching needs to know of an open tokenizer; `folder` is for messages."""
    ids = {
        "cls (or bos)": _first_id(tokenizer, "cls", "bos"),
        "sep (or eos)": _first_id(tokenizer, "sep", "eos"),
        "pad": _first_id(tokenizer, "pad"),
        "mask": _first_id(tokenizer, "mask"),
    }
    missing = [name for name, index in ids.items() if index is None]
    if missing:
        name = missing[0].split(" ")[0]
        raise CorpusError(
            f"{folder}: its tokenizer has no {' and no '.join(missing)} token. Add it with "
            f"tokenizer.add_special_tokens({{'{name}_token': ...}}) and save the tokenizer again."
        )
    cls, sep, pad, mask = (index for index in ids.values() if index is not None)
    added = tokenizer.added_tokens_decoder.items()
    special = {*tokenizer.all_special_ids, *(index for index, token in added if token.special)}
    pieces = tokenizer.get_vocab()
    size = max(pieces.values()) + 1
    word_starts = _word_starts(
        pieces.items(), size, json.loads(tokenizer.backend_tokenizer.to_str())
    )
    word_starts[sorted(special)] = True
    return Vocabulary(
        size=size,
        cls=cls,
        sep=sep,
        pad=pad,
        mask=mask,
        special=tuple(sorted(special)),
        word_starts=word_starts,
    )


def _first_id(tokenizer: Any, *names: str) -> int | None:
    """The id of the first of these special tokens that the tokenizer has."""
    ids = (getattr(tokenizer, f"{name}_token_id") for name in names)
    return next((index for index in ids if index is not None), None)


def _word_starts(pieces: Iterable[tuple[str, int]], size: int, content: Any) -> BoolArray:
    """For each id, whether it begins a word, by the convention the tokenizer follows.

    Where no convention marks words, every piece counts as one. With byte-level BPE the first word
    of a text has no mark: only its position tells.
    """
    starts = np.ones(size, dtype=np.bool_)
    pieces = list(pieces)
    if content["model"]["type"] == "WordPiece":
        continuing = content["model"]["continuing_subword_prefix"]
        for piece, index in pieces:
            starts[index] = not piece.startswith(continuing)
    elif "ByteLevel" in _types(content["pre_tokenizer"]):
        for piece, index in pieces:
            starts[index] = piece.startswith("Ġ")
    elif any(piece.startswith(SPACE_MARK) for piece, _ in pieces):
        for piece, index in pieces:
            # a sentence of a script without spaces would else be one single word
            starts[index] = piece.startswith(SPACE_MARK) or bool(NO_SPACES.match(piece))
    return starts


def _types(step: Any) -> set[str]:
    """The types of a step of a tokenizer.json and of the steps it consists of."""
    if step is None:
        return set()
    inner = step.get("pretokenizers", [])
    return {step["type"]}.union(*map(_types, inner))
