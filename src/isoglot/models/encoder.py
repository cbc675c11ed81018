"""The encoder: any transformers `*ForMaskedLM` model over packed rows.

    rows --mask, positions, languages--> base model --> States --target positions--> LM head

Reads `Rows` of sequences that do not see each other; gives their hidden states in one pass, and
losses of the LM head at target positions. Attention masks, position ids that restart with each
sequence and language embeddings are made here and handed to the model; all that is changed in the
model itself is listed in `optimizations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.folders import model_folder
from isoglot.models import language_embeddings
from isoglot.models.attention import (
    PACKED_ATTENTION,
    Implementation,
    attention_kernels,
    build_masks,
    fastest_implementation,
)
from isoglot.models.config import ModelConfig
from isoglot.models.layers import HashedDropout, draw_seeds, hashed_dropouts
from isoglot.models.lm_head import LMHead, select_positions, target_losses
from isoglot.models.loading import check_vocabulary_size, load_masked_lm, scratch_config
from isoglot.models.optimizations import (
    AppliedOptimization,
    apply_optimizations,
    configure_dropout,
)
from isoglot.models.packing_check import check_packing
from isoglot.models.rotary import extend_context
from isoglot.models.sharding import transformer_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.lm_head import TargetLosses
    from isoglot.types import Rows, Vocabulary


@dataclass(slots=True, kw_only=True)
class States:
    """Hidden states of some rows."""

    hidden: Tensor
    """(B, L, D), after the last layer."""
    layers: tuple[Tensor, ...] | None = None
    """On request: (B, L, D) for the embeddings and after each layer."""


class Encoder(nn.Module):
    """A transformers masked language model over packed rows."""

    def __init__(
        self,
        model: Any,
        settings: ModelConfig,
        *,
        languages: Sequence[str] = (),
        attention_dropout: dict[str, float] | None = None,
    ) -> None:
        """Wrap a model and apply the optimizations.

        Args:
            model: a `*ForMaskedLM` model with `PACKED_ATTENTION`.
            settings: which optimizations apply, and how the encoder runs.
            languages: language codes by id, for language embeddings.
            attention_dropout: the config's own values, which an export writes back.
        """
        super().__init__()
        self.model = model
        self.settings = settings
        self.lm_head = LMHead(model)
        self.attention_dropout = attention_dropout or {}
        self.new_weights: tuple[str, ...] = ()
        """Weights of the LM head that the folder lacks: they are random."""
        self.pooler: dict[str, Tensor] = {}
        """Weights of the folder's pooler, which masked language models lack: exported unchanged."""
        self.languages: nn.Embedding | None = None
        self.language_codes: tuple[str, ...] = ()
        assert languages or settings.language_embeddings != "all", (
            "language embeddings need languages"
        )
        if languages and settings.language_embeddings != "none":
            self.language_codes = tuple(languages)
            width = model.get_input_embeddings().embedding_dim
            self.languages = nn.Embedding(len(languages), width)
            nn.init.zeros_(self.languages.weight)
        self.first_position, self.max_positions = position_range(model)
        self.optimizations: tuple[AppliedOptimization, ...] = ()
        self._dropouts: tuple[HashedDropout, ...] = ()
        self._compiled = False
        self.optimize()

    def optimize(self) -> None:
        """Apply the optimizations to the model; call it again after its base model was replaced."""
        self.optimizations = apply_optimizations(self.model, self.settings)
        self._dropouts = hashed_dropouts(self.model.base_model)

    @classmethod
    def build(
        cls, settings: ModelConfig, vocabulary: Vocabulary, *, languages: Sequence[str] = ()
    ) -> Encoder:
        """Load or create the model that the settings name, for a corpus's vocabulary."""
        settings.check_source()
        if settings.init_from is not None:
            return cls.from_pretrained(
                settings.init_from,
                settings,
                vocabulary_size=vocabulary.size,
                languages=languages,
            )
        return cls.from_scratch(
            settings,
            vocabulary.size,
            vocabulary.pad,
            cls_id=vocabulary.cls,
            sep_id=vocabulary.sep,
            mask_id=vocabulary.mask,
            languages=languages,
        )

    @classmethod
    def from_pretrained(
        cls,
        folder_or_name: str,
        settings: ModelConfig | None = None,
        *,
        vocabulary_size: int | None = None,
        languages: Sequence[str] = (),
    ) -> Encoder:
        """Load a model of a folder or the hub, and check that it runs packed rows.

        Where the settings ask for language embeddings, a folder's own are copied by language code;
        those of other languages begin at zero.

        Raises:
            ModelError: there is no such model, its vocabulary is too small, its language embeddings
                are damaged, or its architecture lets packed sequences see each other.
        """
        settings = settings or ModelConfig(init_from=folder_or_name)
        model, attention_dropout, missing, pooler = load_masked_lm(
            folder_or_name, dropout=settings.dropout, settings=settings
        )
        check_vocabulary_size(folder_or_name, model.config.vocab_size, vocabulary_size)
        encoder = cls(model, settings, languages=languages, attention_dropout=attention_dropout)
        encoder.new_weights, encoder.pooler = missing, pooler
        if encoder.languages is not None:
            language_embeddings.load(
                model_folder(folder_or_name), encoder.languages, encoder.language_codes
            )
        if model.device.type != "meta":  # a model without numbers computes nothing
            check_packing(encoder, folder_or_name)
        return encoder

    @classmethod
    def from_scratch(
        cls,
        settings: ModelConfig,
        vocabulary_size: int,
        pad_id: int,
        *,
        cls_id: int | None = None,
        sep_id: int | None = None,
        mask_id: int | None = None,
        languages: Sequence[str] = (),
    ) -> Encoder:
        """Create a model with random weights, drawn from torch's global generator."""
        config = scratch_config(
            settings,
            vocabulary_size=vocabulary_size,
            pad=pad_id,
            cls=cls_id,
            sep=sep_id,
            mask=mask_id,
        )
        return cls.from_config(config, settings, languages=languages)

    @classmethod
    def from_config(
        cls, config: Any, settings: ModelConfig, *, languages: Sequence[str] = ()
    ) -> Encoder:
        """Create a model of a transformers config with random weights."""
        extend_context(config, settings, settings.init_from or f"model.size: {settings.size}")
        attention_dropout = configure_dropout(config, hidden=settings.dropout)
        model = AutoModelForMaskedLM.from_config(
            config, attn_implementation=PACKED_ATTENTION, dtype=torch.float32
        )
        return cls(model, settings, languages=languages, attention_dropout=attention_dropout)

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def vocabulary_size(self) -> int:
        """Number of logits of the LM head."""
        return int(self.model.config.vocab_size)

    def language_id(self, code: str) -> int:
        """The row of a language's embedding, by its code or another code of it; -1: it has none."""
        return language_embeddings.row_of(code, self.language_codes)

    def check_length(self, length: int) -> None:
        """Refuse sequences longer than the position table; call it once, before training."""
        if length > self.max_positions:
            raise ModelError(
                f"Sequences of {length} tokens do not fit this model, which has "
                f"{self.max_positions} positions. Set batch.row_length to {self.max_positions} or "
                "less, raise model.max_positions of a model trained from scratch, or extend one "
                "with rotary positions (model.rope_theta)."
            )

    @override
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the base model in place; masks and the LM head stay outside."""
        self.model.base_model.compile(*args, **kwargs)
        self._compiled = True

    def compile_regions(self, **settings: Any) -> None:
        """Compile embeddings and each transformer layer by itself, in place.

        Layers of one class share a compiled graph, so that compiling takes as long for 48 layers
        as for one. Hooks around `forward`, which gather and free sharded weights, stay outside.
        """
        base = self.model.base_model
        others = [child for child in base.children() if not transformer_layers(child)]
        for one in (*others, *transformer_layers(base)):
            one.forward = torch.compile(one.forward, **settings)
        self._compiled = True

    @property
    def is_compiled(self) -> bool:
        """Has `compile` been called?"""
        return self._compiled

    @override
    def forward(self, rows: Rows, *, layers: bool = False) -> States:
        """Encode rows; with `layers`, keep the states of every layer.

        Masks are built for the attention kernels that suit the rows, language embeddings are added
        to the word embeddings, seeds of hashed dropout are drawn, and the base model runs once.
        """
        implementation = self._attention_implementation(rows)
        inputs: dict[str, Any] = {
            "attention_mask": build_masks(
                rows, self.model.config, implementation, self._query_dtype(rows)
            ),
            "position_ids": rows.positions + self.first_position,
        }
        if self.languages is None:
            inputs["input_ids"] = rows.ids
        else:
            inputs["inputs_embeds"] = self._embed(rows, self.languages)
        if self._compiled and self.training and rows.ids.is_cuda:
            draw_seeds(self._dropouts, rows.ids.device)
        with attention_kernels(implementation):
            output = self.model.base_model(**inputs, output_hidden_states=layers)
        # states are bf16 where norms give bf16; losses read them in float32, or better
        dtype = torch.promote_types(self.model.dtype, torch.float32)
        return States(
            hidden=output.last_hidden_state.to(dtype),
            layers=tuple(state.to(dtype) for state in output.hidden_states) if layers else None,
        )

    def target_losses(
        self, states: States, positions: Tensor, targets: Tensor, weights: Tensor
    ) -> TargetLosses:
        """The LM head's losses at target positions, flat indices (see `lm_head.target_losses`)."""
        return target_losses(
            self.lm_head,
            states.hidden,
            positions,
            targets,
            weights,
            chunk_size=self.settings.lm_head.chunk_size,
        )

    def logits_at(self, states: States, positions: Tensor) -> Tensor:
        """The LM head's logits (N, V) at flat indices of the rows."""
        return self.lm_head(select_positions(states.hidden, positions))

    def _embed(self, rows: Rows, table: nn.Embedding) -> Tensor:
        has_language = rows.languages >= 0
        if self.settings.language_embeddings == "slots":
            has_language &= rows.roles == 1
        languages = table(rows.languages.clamp(min=0)) * has_language[..., None]
        embedded: Tensor = self.model.get_input_embeddings()(rows.ids) + languages
        return embedded

    def _attention_implementation(self, rows: Rows) -> Implementation:
        if self.settings.attention == "auto":
            return fastest_implementation(rows, self.model.config, self._query_dtype(rows))
        if self.settings.attention == "cudnn":
            return "cudnn" if rows.ids.is_cuda else "sdpa"
        if self.settings.attention == "flex" and not rows.ids.is_cuda and self.training:
            raise ModelError(
                "FlexAttention has no backward pass on a CPU. Leave model.attention at auto."
            )
        return self.settings.attention

    def _query_dtype(self, rows: Rows) -> torch.dtype:
        device = rows.ids.device.type
        if torch.is_autocast_enabled(device):
            return torch.get_autocast_dtype(device)
        dtype: torch.dtype = self.model.dtype
        return dtype


def position_range(model: Any) -> tuple[int, int]:
    """The position id of a sequence's first token, and the number of positions.

    RoBERTa and its successors reserve the first ids up to the padding index. A model without a
    position table rotates queries and keys instead; its config has its limit.
    """
    table = position_table(model)
    if table is None:
        return 0, int(model.config.max_position_embeddings)
    first = 0 if table.padding_idx is None else table.padding_idx + 1
    return first, table.num_embeddings - first


def position_table(model: Any) -> nn.Embedding | None:
    """The position embeddings of a transformers model; none where it rotates queries and keys."""
    for name, module in model.base_model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return module
    return None
