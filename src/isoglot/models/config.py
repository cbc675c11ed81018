"""Settings of the model that is trained: which one, how large, and how it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from isoglot.errors import ModelError
from isoglot.models.head import HeadConfig
from isoglot.models.scratch import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """The decoder of an encoder-decoder (see `seq2seq`)."""

    layers: int | None = None
    """Its layers; none: as many as the encoder, which is made with half of its size's."""
    share_embeddings: bool = True
    """One table of words for the encoder, the decoder and the LM head; or one for each half."""
    cross_output: Literal["shared", "language"] = "shared"
    """Cross-attention ends in one projection, or in one for each language (MASS's code)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which encoder to train: one to open (`start`) or one to make (`size`)."""

    start: str | None = None
    """Folder or Hugging Face name of the masked language model to start from."""
    size: Size | None = None
    """Shape of a model made from scratch: XLM-R's classes, or BERT's and ALBERT's own."""
    layers: int | None = None
    """Number of layers of a model made from scratch, instead of its size's own."""
    hidden: int | None = None
    """Width of a model made from scratch, instead of its size's own."""
    heads: int | None = None
    """Attention heads of a model made from scratch, instead of its size's own."""
    max_positions: int = 512
    """Longest sequence of a model made from scratch; one that is opened keeps its own."""
    dropout: float | None = None
    """Dropout of hidden states; left out, the model's own. Attention dropout is always 0."""
    languages: Literal["none", "all", "slots"] = "slots"
    """Language embeddings, a start folder's own first: none, on all tokens, or only on slots."""
    freeze: Literal["none", "body"] = "none"
    """`body`: train the embeddings and the LM head only; all between them stays as it is."""
    attention: Literal["auto", "sdpa", "flex", "cudnn"] = "auto"
    """How the mask runs: the fastest way that `deterministic` leaves (auto), or always one: torch's
    own attention, FlexAttention, or cuDNN's kernels, which are not deterministic."""
    norms: Literal["auto", "wide", "narrow"] = "auto"
    """What norms hand on under bf16: float32 (wide) or bf16, which is less to move; auto: narrow on
    a GPU."""
    projections: Literal["auto", "apart", "joined"] = "auto"
    """Queries, keys and values in three products, or in one where a model has three; auto: in one
    on a GPU."""
    head: HeadConfig = field(default_factory=HeadConfig)
    """How the LM head runs."""
    decoder: DecoderConfig | None = None
    """A decoder that reads the encoder, for objectives that write; none: only an encoder."""

    def check_start(self) -> None:
        """Refuse both of `start` and `size`, or none."""
        if (self.start is None) == (self.size is None):
            raise ModelError(
                "Give either model.start, to open a model, or model.size, to make one. A recipe's "
                "own size is taken back with --set model.size=null."
            )
