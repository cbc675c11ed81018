"""Trains a SentencePiece vocabulary and writes it as a fast Hugging Face tokenizer.

The ids follow XLM-R: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, then the pieces, `<mask>` last; and
so do the templates, `<s> a </s>` and `<s> a </s> </s> b </s>`. SentencePiece numbers its pieces the
same way, so its own segmentation gives the very ids. Unlike XLM-R's, the tokenizer loses nothing:
it composes characters (NFC) but does not fold them (NFKC), and with byte fallback no character is
unknown.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from isoglot.corpus.clean import SPACE_MARK, UNSEEN
from isoglot.corpus.disk import write_atomically, writing
from isoglot.corpus.tokenizer import flatten
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from isoglot.types import IntArray

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
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
    model: Literal["unigram", "bpe"] = "unigram"
    """How SentencePiece segments."""
    size: int = 32_000
    """Number of ids, special tokens included; fewer if the text does not have as many pieces."""
    alpha: float = 0.5
    """Languages are sampled by (number of sentences)^alpha; 1 is as they are, 0 all alike."""
    max_sentences: int = 1_000_000
    """Most sentences to train on."""
    character_coverage: float = 0.9995
    """Share of the text's characters that get a piece of their own."""
    byte_fallback: bool = True
    """Whether a character without a piece is spelled in bytes (256 ids) rather than unknown."""
    seed: int = 0
    """Which sentences are sampled."""


def train_tokenizer(sentences: Iterable[str], config: TokenizerConfig, folder: Path) -> None:
    """Trains on the sentences and writes the tokenizer folder."""
    model = _train(sentences, config)
    write_atomically(folder / MODEL_FILE, model)
    _save(_fast_tokenizer(model, config), folder)


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


def _fast_tokenizer(model: bytes, config: TokenizerConfig) -> Any:
    import sentencepiece
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import BPE, Unigram
    from tokenizers.processors import TemplateProcessing

    trained = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [trained.id_to_piece(index) for index in range(trained.get_piece_size())]
    if config.model == "unigram":
        scored = [
            (piece, _NEVER if _is_control(trained, index) else trained.get_score(index))
            for index, piece in enumerate(pieces)
        ]
        tokenizer = Tokenizer(Unigram(scored, unk_id=3, byte_fallback=config.byte_fallback))
    else:
        ranks = {piece: index for index, piece in enumerate(pieces)}
        normal = [p for i, p in enumerate(pieces) if not _is_control(trained, i)]
        tokenizer = Tokenizer(
            BPE(
                ranks,
                _merges(normal),
                unk_token=SPECIAL[3],
                fuse_unk=True,
                byte_fallback=config.byte_fallback,
            )
        )
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(UNSEEN), ""),
            normalizers.NFC(),
            normalizers.Replace(Regex(rf"[\s{SPACE_MARK}]+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE_MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE_MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.add_special_tokens([AddedToken(MASK, lstrip=True, normalized=False)])
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:0 </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


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


def _save(tokenizer: Any, folder: Path) -> None:
    """Writes the folder with the generic fast class, which takes tokenizer.json word for word.

    XLM-R's own class would rebuild the segmentation from the pieces and forget byte fallback.
    """
    from transformers import PreTrainedTokenizerFast

    first, pad, last, unknown = SPECIAL
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=first,
        cls_token=first,
        eos_token=last,
        sep_token=last,
        pad_token=pad,
        unk_token=unknown,
        mask_token=MASK,
    )
    with writing(folder):
        fast.save_pretrained(str(folder))
