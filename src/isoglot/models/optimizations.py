"""What Isoglot changes in a transformers model: one list, applied in one place.

`Encoder.__init__` calls `apply_optimizations`, which goes through `OPTIMIZATIONS` from first to
last; `isoglot show model FOLDER` prints the outcome (`describe_model`). No change renames, adds or
removes a weight, so that an export is a plain Hugging Face model. Attention dropout is part of a
config that is changed before the model exists (`configure_dropout`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoglot.errors import ModelError
from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.config import ModelConfig
from isoglot.models.layers import (
    fuse_qkv,
    set_norm_dtype,
    use_deterministic_embeddings,
    use_hashed_dropout,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """One change of a transformers model."""

    name: str
    changes: str
    """What is changed."""
    why: str
    active: Callable[[ModelConfig], str | None]
    """When the change takes effect under some settings; none: it is not made."""
    apply: Callable[[Any, ModelConfig], int]
    """Make the change in a `*ForMaskedLM` model; gives the number of layers changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedOptimization:
    """A change that was made in a model."""

    optimization: Optimization
    active: str
    """When it takes effect."""
    num_layers: int
    """Layers that were changed; 0 where the architecture has none of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """A model folder in numbers, and what is changed in the model when Isoglot loads it."""

    architecture: str
    """The transformers class."""
    num_parameters: int
    num_layers: int
    hidden_size: int
    vocabulary_size: int
    max_positions: int
    new_weights: tuple[str, ...]
    """Weights of the LM head that the folder lacks."""
    optimizations: tuple[AppliedOptimization, ...]


def apply_optimizations(model: Any, settings: ModelConfig) -> tuple[AppliedOptimization, ...]:
    """Make all changes that the settings ask for, in the order of `OPTIMIZATIONS`."""
    return tuple(
        AppliedOptimization(optimization=one, active=active, num_layers=one.apply(model, settings))
        for one in OPTIMIZATIONS
        if (active := one.active(settings)) is not None
    )


def describe_model(folder: Path | str, settings: ModelConfig | None = None) -> ModelDescription:
    """Load a model and describe it, under some settings or the default ones.

    Raises:
        ModelError: the folder holds no model that Isoglot can load.
    """
    from isoglot.models.encoder import Encoder
    from isoglot.models.seq2seq_loading import is_seq2seq
    from isoglot.models.translator import Translator

    name = str(folder)
    if is_seq2seq(name):
        seq2seq = Translator.open(Path(name), "cpu").seq2seq
        encoder, model = seq2seq.encoder, seq2seq.model
    else:
        encoder = Encoder.from_pretrained(name, settings)
        model = encoder.model
    return ModelDescription(
        architecture=type(model).__name__,
        num_parameters=sum(weight.numel() for weight in model.parameters()),
        num_layers=int(encoder.model.config.num_hidden_layers),
        hidden_size=encoder.hidden_size,
        vocabulary_size=encoder.vocabulary_size,
        max_positions=encoder.max_positions,
        new_weights=encoder.new_weights,
        optimizations=encoder.optimizations,
    )


ATTENTION_DROPOUT_FIELDS = ("attention_probs_dropout_prob", "attention_dropout")
HIDDEN_DROPOUT_FIELDS = ("hidden_dropout_prob", "embedding_dropout", "mlp_dropout")


def configure_dropout(config: Any, *, hidden: float | None) -> dict[str, float]:
    """Switch attention dropout off in a config, and set the dropout of hidden states.

    Returns:
        The config's own attention dropout, which an export writes back.
    """
    own = {
        name: getattr(config, name) for name in ATTENTION_DROPOUT_FIELDS if hasattr(config, name)
    }
    for name in own:
        setattr(config, name, 0.0)
    if hidden is not None:
        names = [name for name in HIDDEN_DROPOUT_FIELDS if hasattr(config, name)]
        if hidden and not names:
            raise ModelError(
                f"model.dropout is {hidden}, and a model of type {config.model_type} has no "
                "dropout of hidden states. Set model.dropout to null."
            )
        for name in names:
            setattr(config, name, hidden)
    return own


def _check_packed_attention(model: Any, _: ModelConfig) -> int:
    assert model.config._attn_implementation == PACKED_ATTENTION  # noqa: SLF001
    return int(model.config.num_hidden_layers)


def _check_attention_dropout(model: Any, _: ModelConfig) -> int:
    values = [getattr(model.config, name, 0.0) for name in ATTENTION_DROPOUT_FIELDS]
    assert not any(values), "call configure_dropout before the model is made"
    return int(model.config.num_hidden_layers)


def _freeze_pooler(model: Any, _: ModelConfig) -> int:
    poolers = [child for name, child in model.base_model.named_children() if name == "pooler"]
    for pooler in poolers:
        pooler.requires_grad_(requires_grad=False)
    return len(poolers)


def _freeze_body(model: Any, _: ModelConfig) -> int:
    """Freeze all children of the base model but the one that holds the word embeddings.

    In most architectures that child has the position embeddings and a norm too; MetaXLM (section
    5.4) trains "the embedding layers and the language modeling head".
    """
    words = model.get_input_embeddings()
    frozen = [
        child
        for child in model.base_model.children()
        if all(module is not words for module in child.modules())
    ]
    for child in frozen:
        child.requires_grad_(requires_grad=False)
    return len(frozen)


def _norm_dtype_active(settings: ModelConfig) -> str | None:
    cases = {"auto": "bf16 autocast on a GPU", "bf16": "bf16 autocast", "float32": None}
    return cases[settings.norm_dtype]


OPTIMIZATIONS = (
    Optimization(
        name="packed attention",
        changes="Attention takes the mask rule of packed rows, in SDPA, FlexAttention or cuDNN.",
        why="Several sequences share a row without padding and do not see each other.",
        active=lambda _: "always",
        apply=_check_packed_attention,
    ),
    Optimization(
        name="attention dropout off",
        changes="The dropout of attention weights is 0; an export writes back the config's own.",
        why="FlexAttention has no dropout, and all kernels must compute the same.",
        active=lambda _: "always",
        apply=_check_attention_dropout,
    ),
    Optimization(
        name="LM head at target positions",
        changes="The LM head runs at target positions only, its last product fused with the loss.",
        why="Logits of 250,000 words at every token would take most of a step's time and memory.",
        active=lambda _: "always",
        apply=lambda *_: 1,
    ),
    Optimization(
        name="frozen pooler",
        changes="The pooler gets no gradients.",
        why="No loss reads it.",
        active=lambda _: "always",
        apply=_freeze_pooler,
    ),
    Optimization(
        name="frozen body",
        changes="Only the embeddings and the LM head are trained.",
        why="model.freeze is `body`: MetaXLM's stage with new embeddings (section 5.4).",
        active=lambda settings: "always" if settings.freeze == "body" else None,
        apply=_freeze_body,
    ),
    Optimization(
        name="hashed dropout",
        changes="A dropout mask is a hash of the element's index and two random seeds.",
        why="Philox, compiled, takes a third of the time of the norms it is fused with (H200).",
        active=lambda _: "training with compile on a GPU",
        apply=lambda model, _: use_hashed_dropout(model.base_model),
    ),
    Optimization(
        name="deterministic embedding",
        changes="Embedding gradients are summed in blocks of 128 tokens, in a fixed order.",
        why="The deterministic kernel adds tokens of one id one by one: 30 % of a step (H200).",
        active=lambda _: "training with compile and deterministic algorithms on a GPU",
        apply=lambda model, _: use_deterministic_embeddings(model.base_model),
    ),
    Optimization(
        name="norm dtype",
        changes="Norms compute in float32 and give the autocast type, bf16.",
        why="The residual stream of post-norm models is then bf16: half of the memory traffic.",
        active=_norm_dtype_active,
        apply=lambda model, settings: set_norm_dtype(
            model.base_model, only_on_gpu=settings.norm_dtype == "auto"
        ),
    ),
    Optimization(
        name="fused QKV",
        changes="Queries, keys and values come from one matrix product instead of three.",
        why="One wide product keeps a GPU busier than three narrow ones.",
        active=lambda settings: {None: "on a GPU", True: "always", False: None}[settings.fuse_qkv],
        apply=lambda model, settings: fuse_qkv(
            model.base_model, only_on_gpu=settings.fuse_qkv is None
        ),
    ),
)
"""Every change, in the order in which it is made."""
