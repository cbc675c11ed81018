"""Trains a SentencePiece vocabulary and writes it as a fast Hugging Face tokenizer.

SentencePiece numbers its pieces as the fast tokenizer does (`isoglot.corpus.fast`), so its own
segmentation gives the very ids. Unlike XLM-R's, the tokenizer loses nothing: it composes characters
(NFC) but does not fold them (NFKC) unless the corpus is cleaned so, and with byte fallback no
character is unknown.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.disk import write_atomically
from isoglot.corpus.fast import SPECIAL, Form, fast_tokenizer, save_fast
from isoglot.corpus.pretokenize import Name
from isoglot.corpus.tokenizer import TEXT_TO_IDS, flatten
from isoglot.corpus.words import word_model
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from isoglot.types import IntArray

MODEL_FILE = "sentencepiece.model"

# The fast unigram model would find `<s>` or `<0x41>` spelled in a text and take it for the special
# piece, which SentencePiece never does. With a score below any spelling's it does not either; the
# spelling's characters must be pieces of their own for that.
_NEVER = -1000.0
_SPELLING = "</>0123456789ABCDEFxsunkpad"

# SentencePiece adds up its threads' sums: a fixed number gives the same pieces on every machine
_THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """The tokenizer of a corpus: taken from a folder, or trained on the corpus."""

    folder: str | None = None
    """A Hugging Face tokenizer folder to take as it is; nothing is trained then."""
    model: Literal["unigram", "bpe", "word"] = "unigram"
    """How text is segmented: by SentencePiece (unigram, bpe), or into the most frequent words."""
    size: int = 32_000
    """Number of ids, special tokens included; fewer if the text does not have as many pieces."""
    alpha: float = 0.5
    """Languages are sampled by (number of sentences)^alpha; 1 is as they are, 0 all alike."""
    max_sentences: int = 1_000_000
    """Most sentences to train on."""
    character_coverage: float = 0.9995
    """Share of the text's characters that get a piece of their own."""
    byte_fallback: bool = True
    """Whether a character without a piece is spelled in bytes (256 ids) rather than unknown; a
    word without an id is always unknown."""
    pretokenize: dict[str, Name] = field(default_factory=dict)
    """Language (`*`: every other) -> how its text is divided into words first: none, moses, thai,
    zh or indic."""
    seed: int = 0
    """Which sentences are sampled."""

    def training_settings(self) -> list[str]:
        """The settings of training that are not left as they are."""
        usual = TokenizerConfig()
        return [
            one.name
            for one in fields(self)
            if one.name != "folder" and getattr(self, one.name) != getattr(usual, one.name)
        ]


def train_tokenizer(
    sentences: Iterable[str], config: TokenizerConfig, folder: Path, *, form: Form = "NFC"
) -> None:
    """Trains on the sentences and writes the tokenizer folder.

    `form` is the Unicode form of the sentences, to which the tokenizer brings other texts too.
    """
    if config.model == "word":
        save_fast(word_model(sentences, config.size), folder, form)
        return
    model = _train(sentences, config)
    write_atomically(folder / MODEL_FILE, model)
    save_fast(_fast_model(model, config), folder, form)


class PieceEncoder:
    """Encodes with SentencePiece itself: the ids of the fast tokenizer, several times faster.

    A text that merely spells a special token (`<mask>`) is text like any other.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is one that `train_tokenizer` wrote."""
        import sentencepiece

        self._model = sentencepiece.SentencePieceProcessor(model_file=str(folder / MODEL_FILE))

    def encode(self, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """All ids in a row, and how many belong to each (normalised) text."""
        return flatten(self._model.encode(list(texts)))


def takes_pieces(folder: Path, tokenizer: Any, form: Form) -> bool:
    """Can SentencePiece encode text of this form for the tokenizer of a folder, with the very ids?

    It can if `train_tokenizer` wrote the folder and nobody has changed either file since: the
    tokenizer that the SentencePiece model makes is compared with the one that is there.
    """
    from sentencepiece import sentencepiece_model_pb2

    path = folder / MODEL_FILE
    if not path.is_file():
        return False
    model = path.read_bytes()
    try:
        spec = sentencepiece_model_pb2.ModelProto.FromString(model).trainer_spec
        kind: Literal["unigram", "bpe"] = "bpe" if spec.model_type == spec.BPE else "unigram"
        settings = TokenizerConfig(model=kind, byte_fallback=spec.byte_fallback)
        made = json.loads(fast_tokenizer(_fast_model(model, settings), form).to_str())
    except Exception:  # damaged, or of a kind that is not made here; each has an error of its own
        return False
    there = json.loads(tokenizer.backend_tokenizer.to_str())
    return all(made[section] == there[section] for section in TEXT_TO_IDS)


def _train(sentences: Iterable[str], config: TokenizerConfig) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=config.model,
            vocab_size=config.size - 1,  # <mask> is not SentencePiece's
            hard_vocab_limit=False,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name="identity",  # cleaned text is normal already
            required_chars=_SPELLING if config.model == "unigram" else "",
            max_sentence_length=1 << 20,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            num_threads=_THREADS,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise CorpusError(
            f"tokenizer.size: SentencePiece cannot make {config.size} pieces here ({error}). "
            "The size must hold every character of the text (and 256 bytes, with byte fallback)."
        ) from error
    return _round_scores(model.getvalue())


def _round_scores(model: bytes) -> bytes:
    """The model with scores that are multiples of 2^-10, whose sums are exact.

    SentencePiece adds scores up in single precision, the fast tokenizer in double. Where two
    segmentations tie (`...` `..` and `..` `...`), rounding would decide, and differently.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for piece in proto.pieces:
        piece.score = round(piece.score * 1024) / 1024
    rounded: bytes = proto.SerializeToString(deterministic=True)
    return rounded


def _fast_model(model: bytes, config: TokenizerConfig) -> Any:
    """The trained pieces as a model of the tokenizers library."""
    import sentencepiece
    from tokenizers.models import BPE, Unigram

    trained = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [trained.id_to_piece(index) for index in range(trained.get_piece_size())]
    if config.model == "unigram":
        scored = [
            (piece, _NEVER if _is_control(trained, index) else trained.get_score(index))
            for index, piece in enumerate(pieces)
        ]
        return Unigram(scored, unk_id=3, byte_fallback=config.byte_fallback)
    ranks = {piece: index for index, piece in enumerate(pieces)}
    normal = [p for i, p in enumerate(pieces) if not _is_control(trained, i)]
    return BPE(
        ranks,
        _merges(normal),
        unk_token=SPECIAL[3],
        fuse_unk=True,
        byte_fallback=config.byte_fallback,
    )


def _is_control(trained: Any, index: int) -> bool:
    return bool(trained.is_control(index) or trained.is_unknown(index) or trained.is_byte(index))


def _merges(pieces: list[str]) -> list[tuple[str, str]]:
    """Every way two pieces make a third, earlier pieces first: SentencePiece's own order."""
    known = set(pieces)
    return [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
