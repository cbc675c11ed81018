"""The tokenizer of any Hugging Face folder: opening it, its fingerprint, its vocabulary.

Training needs to know of a tokenizer only an `isoglot.types.Vocabulary`. It is derived here and
kept as vocabulary.npz beside the tokenizer, so that training does not load transformers' tokenizer.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.atomic import write_errors
from isoglot.errors import CorpusError, library_errors
from isoglot.folders import TOKENIZER_FILES
from isoglot.types import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from isoglot.types import BoolArray

SPACE_MARK = "▁"
"""SentencePiece writes a space as this character, so in a text it counts as one."""
VOCABULARY_FILE = "vocabulary.npz"
TOKENIZER_FILE = "tokenizer.json"
_IDS = ("size", "cls", "sep", "pad", "mask")

_MIN_TOKEN_LENGTH = 16
"""Characters of the longest token, at least."""
_SPARE_CHARACTERS = 4
"""Characters of a text for each character of its tokens: normalization joins or drops some."""

TEXT_TO_IDS = ("added_tokens", "normalizer", "pre_tokenizer", "model")
"""The sections of tokenizer.json that decide the ids; others are for decoding and padding."""

NO_SPACE_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x9FFF),  # Han
)
"""First and last characters of scripts that write no spaces between words."""
NO_SPACES = re.compile(f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in NO_SPACE_RANGES)}]")
"""Matches a character of one of these scripts."""


def text_decoder(tokenizer: Any) -> Callable[[Sequence[int]], str]:
    """Token ids -> text with single spaces, which gives the same ids when it is tokenized again.

    `tokenizer.decode` writes words that were added to a vocabulary without the spaces around them.
    """
    added = {
        number: token.content
        for number, token in tokenizer.added_tokens_decoder.items()
        if not token.special
    }

    def decode(ids: Sequence[int]) -> str:
        texts: list[str] = []
        run: list[int] = []
        for number in ids:
            if number in added:
                texts += [tokenizer.decode(run), added[number]]
                run = []
            else:
                run.append(number)
        return " ".join(" ".join([*texts, tokenizer.decode(run)]).split())

    return decode


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder as transformers opens it, offline and without remote code."""
    from transformers import AutoTokenizer

    if not folder.is_dir():
        raise CorpusError(
            f"{folder}: there is no such folder. Name one that holds a Hugging Face tokenizer."
        )
    if not any(any(folder.glob(name)) for name in TOKENIZER_FILES):
        raise _no_tokenizer(folder, TOKENIZER_FILES)
    with library_errors(
        CorpusError, f"{folder}: does not hold a tokenizer that transformers can open"
    ):
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    if not tokenizer.is_fast:
        raise CorpusError(
            f"{folder}: has only a slow tokenizer, written in Python. Put a fast version of it "
            f"({TOKENIZER_FILE}) into the folder, or name another tokenizer."
        )
    # for a folder with only config.json, transformers makes a tokenizer of special tokens alone
    names = {TOKENIZER_FILE, *tokenizer.vocab_files_names.values()}
    if not any((folder / name).is_file() for name in names):
        raise _no_tokenizer(folder, sorted(names))
    return tokenizer


def _no_tokenizer(folder: Path, files: Iterable[str]) -> CorpusError:
    return CorpusError(
        f"{folder}: holds no tokenizer ({' or '.join(files)}). Copy the files of the model's "
        "tokenizer into it, or name the folder that has them."
    )


def max_characters(tokenizer: Any, max_length: int) -> int:
    """Characters beyond which a text has more than `max_length` tokens, for ordinary text."""
    return _SPARE_CHARACTERS * max_length * _longest_token(tokenizer)


@lru_cache(maxsize=8)
def _longest_token(tokenizer: Any) -> int:
    """Characters of the tokenizer's longest token that is not special."""
    special = set(tokenizer.all_special_tokens)
    longest = max(
        (len(token) for token in tokenizer.get_vocab() if token not in special), default=0
    )
    return max(_MIN_TOKEN_LENGTH, longest)


def tokenizer_fingerprint(
    tokenizer: Any, vocabulary: Vocabulary, pretokenize: Mapping[str, str] | None = None
) -> str:
    """SHA-256 of everything that turns text into ids; not of dates, padding or library versions.

    `pretokenize` is the `methods` of a `Pretokenizer`.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    canonical: dict[str, Any] = {
        "sections": {name: content.get(name) for name in TEXT_TO_IDS},
        "special": [vocabulary.cls, vocabulary.sep, vocabulary.pad, vocabulary.mask],
    }
    if pretokenize:
        canonical["pretokenize"] = dict(pretokenize)
    return sha256(json.dumps(canonical, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def save_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Writes vocabulary.npz into the tokenizer's folder."""
    path = folder / VOCABULARY_FILE
    with write_errors(path):
        np.savez(
            path,
            ids=[getattr(vocabulary, name) for name in _IDS],
            special=vocabulary.special,
            word_starts=vocabulary.word_starts,
        )


def load_vocabulary(folder: Path) -> Vocabulary:
    """Reads vocabulary.npz of a tokenizer's folder."""
    with np.load(folder / VOCABULARY_FILE, allow_pickle=False) as arrays:
        return Vocabulary(
            **dict(zip(_IDS, arrays["ids"].tolist(), strict=True)),
            special=tuple(arrays["special"].tolist()),
            word_starts=arrays["word_starts"],
        )


def derive_vocabulary(tokenizer: Any, folder: Path) -> Vocabulary:
    """The vocabulary of an open tokenizer; `folder` is for messages."""
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
            f"tokenizer.add_special_tokens({{'{name}_token': ...}}) and save the tokenizer again; "
            "its model needs model.resize_token_embeddings(len(tokenizer)) before it is saved."
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
    """For each id, whether it begins a word, by the tokenizer's convention.

    Without a convention every token counts as a word. In byte-level BPE the first word of a text
    has no mark.
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
            # otherwise a sentence of a script without spaces would be one word
            starts[index] = piece.startswith(SPACE_MARK) or bool(NO_SPACES.match(piece))
    return starts


def _types(step: Any) -> set[str]:
    """The types of a pre-tokenizer of tokenizer.json and of those inside it."""
    if step is None:
        return set()
    return {step["type"]}.union(*map(_types, step.get("pretokenizers", [])))
