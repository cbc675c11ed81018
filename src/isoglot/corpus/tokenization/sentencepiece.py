"""SentencePiece models: training, encoding, and conversion to a fast Hugging Face tokenizer.

A unigram model is trained by `unigram_training` and written as a file of SentencePiece; a BPE model
is trained by SentencePiece itself.

SentencePiece numbers its pieces as the Hugging Face tokenizer does (`tokenization.hf_tokenizer`),
so both give the same ids. Unlike XLM-R's, the tokenizer is lossless: it composes characters (NFC)
and folds them (NFKC) only if the corpus is cleaned so; with byte fallback no character is unknown.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.tokenization.hf_tokenizer import SPECIAL_TOKENS, build_hf_tokenizer, flatten_ids
from isoglot.corpus.tokenization.vocabulary import TEXT_TO_IDS
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.corpus.cleaning.sentences import UnicodeForm
    from isoglot.corpus.tokenization.build import TokenizerConfig
    from isoglot.types import IntArray

MODEL_FILE = "sentencepiece.model"
SentencePieceType = Literal["unigram", "bpe"]

# Hugging Face's unigram model would segment the text `<s>` or `<0x41>` as the special piece, which
# SentencePiece never does. A score below that of any other segmentation prevents it; for that the
# characters of these pieces must be pieces of their own.
_CONTROL_SCORE = -1000.0
_CONTROL_CHARACTERS = "</>0123456789ABCDEFxsunkpad"

_BYTES = 256


class SentencePieceEncoder:
    """Encodes with SentencePiece: the ids of the Hugging Face tokenizer, several times faster.

    A text that spells a special token (`<mask>`) is encoded as plain text.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` holds a sentencepiece.model."""
        import sentencepiece

        self._model = sentencepiece.SentencePieceProcessor(model_file=str(folder / MODEL_FILE))

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """The ids of all (normalized) texts, concatenated, and the number of ids of each text."""
        return flatten_ids(self._model.encode(list(texts)))


def gives_same_ids(folder: Path, tokenizer: Any, form: UnicodeForm) -> bool:
    """Whether the folder's SentencePiece model gives the same ids as its tokenizer.

    The tokenizer that would be built from the model is compared with the given one: equal if
    `train_tokenizer` wrote the folder and neither file has changed since.
    """
    from sentencepiece import sentencepiece_model_pb2

    path = folder / MODEL_FILE
    if not path.is_file():
        return False
    model = path.read_bytes()
    try:
        spec = sentencepiece_model_pb2.ModelProto.FromString(model).trainer_spec
        kind: SentencePieceType = "bpe" if spec.model_type == spec.BPE else "unigram"
        converted = to_hf_model(model, kind, byte_fallback=spec.byte_fallback)
        built = json.loads(build_hf_tokenizer(converted, form).to_str())
    except Exception:  # damaged, or of an unsupported type; each has an error class of its own
        return False
    given = json.loads(tokenizer.backend_tokenizer.to_str())
    return all(built[section] == given[section] for section in TEXT_TO_IDS)


def train_sentencepiece(words: Mapping[str, int], config: TokenizerConfig) -> bytes:
    """A SentencePiece model trained on counted, normalized words, as the bytes of its file."""
    model = (
        _train_unigram(words, config) if config.model == "unigram" else _train_bpe(words, config)
    )
    return _round_scores(model)


def _train_unigram(words: Mapping[str, int], config: TokenizerConfig) -> bytes:
    """A unigram model (`unigram_training`) as a file of SentencePiece."""
    from sentencepiece import sentencepiece_model_pb2

    from isoglot.corpus.tokenization.unigram_training import TooManyCharactersError, train_unigram

    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    special = [(token, kinds.CONTROL) for token in SPECIAL_TOKENS[:3]]
    special.append((SPECIAL_TOKENS[3], kinds.UNKNOWN))
    if config.byte_fallback:
        special += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(_BYTES)]
    for piece, kind in special:
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    number = config.vocab_size - 1 - len(special)  # SentencePiece has no <mask>
    try:
        pieces = train_unigram(words, number, config.character_coverage, _CONTROL_CHARACTERS)
    except TooManyCharactersError as error:
        raise _size_error(config, error) from error
    for piece, score in pieces:
        proto.pieces.add(piece=piece, score=score)
    spec = proto.trainer_spec
    spec.model_type, spec.vocab_size = spec.UNIGRAM, len(proto.pieces)
    spec.byte_fallback, spec.hard_vocab_limit = config.byte_fallback, False
    spec.character_coverage = config.character_coverage
    spec.bos_id, spec.pad_id, spec.eos_id, spec.unk_id = range(4)
    proto.normalizer_spec.name = "identity"  # cleaned text is normalized already
    model: bytes = proto.SerializeToString(deterministic=True)
    return model


def _train_bpe(words: Mapping[str, int], config: TokenizerConfig) -> bytes:
    """A BPE model trained by SentencePiece."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{word}\t{number}" for word, number in words.items()),
            input_format="tsv",
            model_writer=model,
            model_type="bpe",
            vocab_size=config.vocab_size - 1,  # SentencePiece has no <mask>
            hard_vocab_limit=False,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name="identity",  # cleaned text is normalized already
            max_sentence_length=1 << 20,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise _size_error(config, error) from error
    return model.getvalue()


def _size_error(config: TokenizerConfig, error: Exception) -> CorpusError:
    return CorpusError(
        f"tokenizer.vocab_size: there cannot be {config.vocab_size} pieces ({error}). The size "
        "must hold every character of the text (and 256 bytes, with byte fallback)."
    )


def _round_scores(model: bytes) -> bytes:
    """The model with scores rounded to multiples of 2^-10, whose sums are exact.

    SentencePiece adds scores in single precision, Hugging Face in double: without this, rounding
    would break ties between segmentations (`...` `..` and `..` `...`) differently.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for piece in proto.pieces:
        piece.score = round(piece.score * 1024) / 1024
    rounded: bytes = proto.SerializeToString(deterministic=True)
    return rounded


def to_hf_model(model: bytes, kind: SentencePieceType, *, byte_fallback: bool) -> Any:
    """A SentencePiece model as a model of the tokenizers library."""
    import sentencepiece
    from tokenizers.models import BPE, Unigram

    trained = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [trained.id_to_piece(index) for index in range(trained.get_piece_size())]
    if kind == "unigram":
        scored = [
            (piece, _CONTROL_SCORE if _is_control(trained, index) else trained.get_score(index))
            for index, piece in enumerate(pieces)
        ]
        return Unigram(scored, unk_id=3, byte_fallback=byte_fallback)
    ranks = {piece: index for index, piece in enumerate(pieces)}
    normal = [p for i, p in enumerate(pieces) if not _is_control(trained, i)]
    return BPE(
        ranks,
        _merges(normal),
        unk_token=SPECIAL_TOKENS[3],
        fuse_unk=True,
        byte_fallback=byte_fallback,
    )


def _is_control(trained: Any, index: int) -> bool:
    return bool(trained.is_control(index) or trained.is_unknown(index) or trained.is_byte(index))


def _merges(pieces: list[str]) -> list[tuple[str, str]]:
    """Every split of a piece into two pieces, earlier pieces first: SentencePiece's order."""
    known = set(pieces)
    return [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
