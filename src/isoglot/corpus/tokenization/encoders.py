"""The encoders of the encoding stage, and which of them gives a tokenizer's ids the fastest."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from isoglot.corpus.tokenization import byte_bpe, unigram, wordpiece
from isoglot.corpus.tokenization.byte_bpe import ByteBPEEncoder
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.hf_words import HFWordEncoder, splits_at_spaces
from isoglot.corpus.tokenization.sentencepiece import SentencePieceEncoder
from isoglot.corpus.tokenization.unigram import UnigramEncoder
from isoglot.corpus.tokenization.wordpiece import WordPieceEncoder
from isoglot.corpus.tokenization.words import WordEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.types import IntArray

EncoderName = Literal["sentencepiece", "unigram", "wordpiece", "byte_bpe", "words", "library"]


class Encoder(Protocol):
    """Encodes normalized texts."""

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The ids of all texts, concatenated, and the number of ids of each text."""
        ...


def fastest_encoder(sections: Mapping[str, Any]) -> EncoderName:
    """The fastest encoder with the ids of the tokenizers library, by a tokenizer.json."""
    if unigram.is_supported(sections):
        return "unigram"
    if wordpiece.is_supported(sections):
        return "wordpiece"
    if byte_bpe.is_supported(sections):
        return "byte_bpe"
    return "words" if splits_at_spaces(sections) else "library"


def open_encoder(name: EncoderName, folder: Path, sha256: str) -> Encoder:
    """An encoder, opened once in a process; `sha256` is of the folder's files."""
    encoder = _open(name, folder, sha256)
    if isinstance(encoder, WordEncoder):
        encoder.compare_next()
    return encoder


@lru_cache(maxsize=1)
def _open(name: EncoderName, folder: Path, sha256: str) -> Encoder:
    del sha256  # tells folders of the same name apart
    kinds: dict[EncoderName, type[Any]] = {
        "sentencepiece": SentencePieceEncoder,
        "unigram": UnigramEncoder,
        "wordpiece": WordPieceEncoder,
        "byte_bpe": ByteBPEEncoder,
        "words": HFWordEncoder,
        "library": HFEncoder,
    }
    opened: Encoder = kinds[name](folder)
    return opened
