"""Settings of models: which one, how large, how it runs, how it generates, what is exported.

Only dataclasses: importing this module loads neither torch nor transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, NamedTuple

from isoglot.errors import ModelError, require, require_name
from isoglot.ranges import Range, Temperature, check_ranges

ModelSize = Literal[
    "tiny",
    "small",
    "base",
    "large",
    "xl",
    "xxl",
    "modern-tiny",
    "modern-small",
    "modern-base",
    "modern-large",
    "eurobert-tiny",
    "eurobert-small",
    "eurobert-base",
    "xlm",
    "mbert",
    "albert",
]


class Shape(NamedTuple):
    """Layers, width and attention heads of a model."""

    layers: int
    hidden: int
    heads: int
    feed_forward: float = 4.0
    """Width of the feed-forward layer (of one half of it, if it is gated) by that of the model."""


SHAPES: dict[ModelSize, Shape] = {
    "tiny": Shape(4, 128, 4),
    "small": Shape(6, 384, 6),
    "base": Shape(12, 768, 12),
    "large": Shape(24, 1024, 16),
    "xl": Shape(36, 2560, 32),
    "xxl": Shape(48, 4096, 32),
    "modern-tiny": Shape(4, 128, 4, 2.5),
    "modern-small": Shape(6, 384, 6, 8 / 3),
    "modern-base": Shape(22, 768, 12, 1.5),
    "modern-large": Shape(28, 1024, 16, 2.5625),
    "eurobert-tiny": Shape(4, 128, 4),
    "eurobert-small": Shape(6, 384, 6, 8 / 3),
    "eurobert-base": Shape(12, 768, 12),
    "xlm": Shape(12, 1024, 8),
    "mbert": Shape(12, 768, 12),
    "albert": Shape(12, 768, 12),
}
"""Most use XLM-R's classes (post-norm, GELU, learned positions); `xl` and `xxl` use those of XLM-R
XL and XXL (pre-norm; 3.5 and 10.7 billion weights with its vocabulary). `modern-*` use those of
ModernBERT (Warner et al., 2024: pre-norm, rotary positions, GeGLU, windows of 128 tokens in two of
three layers, no biases): base and large have its own shapes, small the weights of `small`.
`eurobert-*` use those of EuroBERT (Boizard et al., 2025: Llama's layers with attention in both
directions): base has the shape of its 210M model.
`xlm` has the shape of XLM-15, whose own transformers classes take no 4-D mask. `albert` is ALBERT
base: one layer used twelve times, and embeddings of 128 dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LMHeadConfig:
    """How the LM head runs."""

    chunk_size: Annotated[int, Range(1, 2**24)] = 8192
    """Number of target positions whose logits are in memory at the same time."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """The decoder of an encoder-decoder (see `seq2seq`)."""

    num_layers: Annotated[int | None, Range(1, 512)] = None
    """Decoder layers; none: as many as the encoder, which then has half of its size's layers."""
    share_embeddings: bool = True
    """One embedding table for the encoder, the decoder and the LM head, or one for each half."""
    cross_attention_output: Literal["shared", "language"] = "shared"
    """Output projection of cross-attention: one, or one for each language (MASS's code)."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which encoder to train: an existing one (`init_from`) or a new one (`size`)."""

    init_from: str | None = None
    """Folder, run (runs/NAME) or Hugging Face name of the masked language model to start from."""
    size: ModelSize | None = None
    """Shape of a model trained from scratch: classes of XLM-R, ModernBERT, EuroBERT, BERT
    or ALBERT."""
    num_layers: Annotated[int | None, Range(1, 512)] = None
    """Number of layers of a model trained from scratch, instead of its size's own."""
    hidden_size: Annotated[int | None, Range(1, 2**15)] = None
    """Width of a model trained from scratch, instead of its size's own."""
    num_heads: Annotated[int | None, Range(1, 2**10)] = None
    """Attention heads of a model trained from scratch, instead of its size's own."""
    max_positions: Annotated[int, Range(8, 2**20)] = 512
    """Position embeddings of a model trained from scratch; `init_from` keeps the model's own, and
    `modern-*` and `eurobert-*` have rotary positions up to 8,192 or this number."""
    # not in `repr`, which feeds fingerprints of runs that were made before this setting
    rope_theta: Annotated[float | None, Range(1, 1e9, above=True)] = field(default=None, repr=False)
    """Base of the rotary positions of layers without a window, and `max_positions` of them: context
    extension of a model of ModernBERT's or EuroBERT's kind; none: the model's own."""
    dropout: Annotated[float | None, Range(0, 1, below=True)] = None
    """Dropout of hidden states; none: the model's own. Attention dropout is always 0."""
    language_embeddings: Literal["none", "all", "slots"] = "slots"
    """Tokens that get a language embedding: none, all, or slots only. `init_from`'s are kept."""
    freeze: Literal["none", "body"] = "none"
    """`body`: train only the embeddings and the LM head, and freeze the layers between them."""
    attention: Literal["auto", "sdpa", "flex", "cudnn"] = "auto"
    """Attention kernels: the fastest that `deterministic` allows (auto), or always PyTorch SDPA,
    FlexAttention, or cuDNN, which is not deterministic."""
    norm_dtype: Literal["auto", "float32", "bf16"] = "auto"
    """Output type of normalization layers under bf16 autocast; auto: bf16 on a GPU, which halves
    their memory traffic."""
    fuse_qkv: bool | None = None
    """Compute queries, keys and values in one matrix product; none: on a GPU."""
    lm_head: LMHeadConfig = field(default_factory=LMHeadConfig)
    """How the LM head runs."""
    decoder: DecoderConfig | None = None
    """The decoder, for objectives that generate text; none: an encoder alone."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.hidden_size is None
            or self.num_heads is None
            or self.hidden_size % self.num_heads == 0,
            f"model.hidden_size {self.hidden_size} must be a multiple of model.num_heads "
            f"{self.num_heads}",
        )

    def check_source(self) -> None:
        """Raise unless exactly one of `init_from` and `size` is set."""
        if (self.init_from is None) == (self.size is None):
            raise ModelError(
                "Give either model.init_from, to start from a model, or model.size, to train one "
                "from scratch."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationConfig:
    """How a decoder generates; the names are those of transformers and fairseq."""

    method: Literal["greedy", "beam", "sample"] = "greedy"
    """Greedy search, beam search, or sampling."""
    num_beams: Annotated[int, Range(1, 1000)] = 5
    """Beam search: the number of beams."""
    length_penalty: Annotated[float, Range(-100, 100)] = 1.0
    """Beam search: scores are divided by the length to this power."""
    temperature: Temperature = 1.0
    """Sampling: the logits are divided by it."""
    max_length_a: Annotated[float, Range(0, 1000)] = 1.3
    """At most `max_length_a` * n + `max_length_b` tokens are generated for a source of n tokens."""
    max_length_b: Annotated[int, Range(1, 2**17)] = 5
    """The constant in that limit."""

    def __post_init__(self) -> None:
        check_ranges(self)

    def describe(self) -> str:
        """The method, and the settings that differ from their defaults."""
        others = [
            f"{one.name}={getattr(self, one.name)}"
            for one in fields(self)
            if one.name != "method" and getattr(self, one.name) != one.default
        ]
        return ", ".join([self.method, *others])

    def max_lengths(self, lengths: Any) -> Any:
        """The most tokens to generate for sources of these lengths (a tensor, or an array)."""
        return lengths * self.max_length_a // 1 + self.max_length_b


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """What a run exports: the Hugging Face folder of its last or best step, and more if asked."""

    checkpoint: Literal["last", "best"] = "last"
    """The step that is exported at the end: the last, or that of the best validation (by
    `early_stopping.metric`, auto without early stopping)."""
    every_steps: Annotated[int, Range(0, 10**9)] = 0
    """Steps between two intermediate exports, for scores along training; 0: none."""
    sentence_transformers: Literal["none", "pooled", "projected"] = "none"
    """A sentence-transformers folder: none, of pooled states, or with the projection too."""
    pooling: Literal["mean", "cls"] | None = None
    """Pooling of that folder; none: the contrastive objective's, or else the mean of the states."""
    fold_languages: tuple[str, ...] = ()
    """Languages of language embeddings on all tokens to write a plain folder of each for."""
    license: str | None = None
    """License of the exported model for its card, as the hub names it: apache-2.0, cc-by-4.0."""

    def __post_init__(self) -> None:
        check_ranges(self)
        for code in self.fold_languages:
            require_name(code, "export.fold_languages")
