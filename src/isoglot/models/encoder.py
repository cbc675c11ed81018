"""The encoder: any transformers `*ForMaskedLM` model, as it is, over packed rows.

Reads `Rows` of sequences that must not see each other; gives their hidden states in one pass, and
losses of the LM head at prediction sites. What the model itself knows nothing of is added around
it: the mask rule (`attention`), positions that restart with each sequence, language embeddings.

    rows --masks, positions, languages--> base model --> States --sites--> LM head --> SiteLosses

Attention dropout is off, however the mask is realised, since FlexAttention has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.models import head, language_embeddings
from isoglot.models.attention import PACKED, Implementation, fastest, kernels, masks
from isoglot.models.config import ModelConfig
from isoglot.models.dropout import set_dropout
from isoglot.models.exact_embedding import sum_embeddings_exactly
from isoglot.models.hashed_dropout import HashedDropout, draw_seeds, hash_dropouts
from isoglot.models.joined import join_projections
from isoglot.models.narrow import narrow_norms
from isoglot.models.opening import check_vocabulary, open_model
from isoglot.models.probe import probe
from isoglot.models.scratch import scratch_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.head import SiteLosses
    from isoglot.types import Rows, Vocabulary


@dataclass(slots=True, kw_only=True)
class States:
    """What the encoder says of some rows."""

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
        """Wrap a model that runs `PACKED` attention.

        Args:
            model: a `*ForMaskedLM` model.
            settings: what was asked for.
            languages: codes of the languages, by id, for language embeddings.
            attention_dropout: the config's own values, which an export gives back.
        """
        super().__init__()
        assert model.config._attn_implementation == PACKED  # noqa: SLF001
        self.model = model
        self.settings = settings
        self.lm_head = head.LMHead(model)
        self.attention_dropout = attention_dropout or {}
        embeddings = model.get_input_embeddings()
        self.languages: nn.Embedding | None = None
        self.language_codes: tuple[str, ...] = ()
        assert languages or settings.languages != "all", "language embeddings need languages"
        if languages and settings.languages != "none":
            self.language_codes = tuple(languages)
            self.languages = nn.Embedding(len(languages), embeddings.embedding_dim)
            nn.init.zeros_(self.languages.weight)
        self.first_position, self.max_positions = positions_of(model)
        self._dropouts: tuple[HashedDropout, ...] = ()
        self._compiled = False
        self.fit_body()

    def fit_body(self) -> None:
        """Give the body what the settings ask of it; again, where it is another one."""
        for name, module in self.model.base_model.named_children():
            if name == "pooler":
                module.requires_grad_(requires_grad=False)
        if self.settings.freeze == "body":
            _freeze_body(self.model)
        self._dropouts = hash_dropouts(self.model.base_model)
        sum_embeddings_exactly(self.model.base_model)
        if self.settings.norms != "wide":
            narrow_norms(self.model.base_model, only_on_gpu=self.settings.norms == "auto")
        if self.settings.projections != "apart":
            join_projections(self.model.base_model, only_on_gpu=self.settings.projections == "auto")

    @classmethod
    def build(
        cls, settings: ModelConfig, vocabulary: Vocabulary, *, languages: Sequence[str] = ()
    ) -> Encoder:
        """Open or make the model that the settings name, for a corpus's words and languages."""
        settings.check_start()
        if settings.start is not None:
            return cls.open(
                settings.start,
                settings,
                vocabulary_size=vocabulary.size,
                languages=languages,
            )
        return cls.make(
            settings,
            vocabulary.size,
            vocabulary.pad,
            cls_id=vocabulary.cls,
            sep_id=vocabulary.sep,
            languages=languages,
        )

    @classmethod
    def open(
        cls,
        folder_or_name: str,
        settings: ModelConfig | None = None,
        *,
        vocabulary_size: int | None = None,
        languages: Sequence[str] = (),
    ) -> Encoder:
        """Open a folder or a model of the hub, and prove that it runs packed rows.

        Where the settings want language embeddings, those that a folder has are taken over by
        code; languages it does not know begin at zero.

        Raises:
            ModelError: there is no such model, its vocabulary is too small, its language embeddings
                are damaged, or its architecture lets packed sequences see each other.
        """
        settings = settings or ModelConfig(start=folder_or_name)
        model, attention_dropout = open_model(folder_or_name, dropout=settings.dropout)
        check_vocabulary(folder_or_name, model.config.vocab_size, vocabulary_size)
        encoder = cls(model, settings, languages=languages, attention_dropout=attention_dropout)
        if encoder.languages is not None:
            language_embeddings.load(
                Path(folder_or_name), encoder.languages, encoder.language_codes
            )
        probe(encoder, folder_or_name)
        return encoder

    @classmethod
    def make(
        cls,
        settings: ModelConfig,
        vocabulary_size: int,
        pad_id: int,
        *,
        cls_id: int | None = None,
        sep_id: int | None = None,
        languages: Sequence[str] = (),
    ) -> Encoder:
        """Make a model from scratch, with random weights (torch's own generator draws them)."""
        config = scratch_config(
            settings, vocabulary_size=vocabulary_size, pad=pad_id, cls=cls_id, sep=sep_id
        )
        attention_dropout = set_dropout(config, hidden=settings.dropout)
        model = AutoModelForMaskedLM.from_config(
            config, attn_implementation=PACKED, dtype=torch.float32
        )
        return cls(model, settings, languages=languages, attention_dropout=attention_dropout)

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def vocabulary_size(self) -> int:
        """Number of words that the LM head tells apart."""
        return int(self.model.config.vocab_size)

    def check_length(self, length: int) -> None:
        """Refuse sequences longer than the position table; call it once, before training."""
        if length > self.max_positions:
            raise ModelError(
                f"Sequences of {length} tokens do not fit this model, which has "
                f"{self.max_positions} positions. Shorten them or raise model.max_positions "
                "of a model made from scratch."
            )

    @override
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the base model in place; masks and the head at sites stay outside it."""
        self.model.base_model.compile(*args, **kwargs)
        self._compiled = True

    @override
    def forward(self, rows: Rows, *, layers: bool = False) -> States:
        """Encode rows; with `layers`, keep the states of every layer."""
        implementation = self._implementation(rows)
        inputs: dict[str, Any] = {
            "attention_mask": masks(
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
        with kernels(implementation):
            output = self.model.base_model(**inputs, output_hidden_states=layers)
        # whoever reads states reads them in the arithmetic of the weights
        return States(
            hidden=output.last_hidden_state.to(self.model.dtype),
            layers=tuple(state.to(self.model.dtype) for state in output.hidden_states)
            if layers
            else None,
        )

    def site_losses(
        self, states: States, positions: Tensor, targets: Tensor, weights: Tensor
    ) -> SiteLosses:
        """The LM head's losses at flat indices of the rows (see `head.site_losses`)."""
        return head.site_losses(
            self.lm_head,
            states.hidden,
            positions,
            targets,
            weights,
            chunk=self.settings.head.chunk,
        )

    def logits_at(self, states: States, positions: Tensor) -> Tensor:
        """The LM head's logits (N, V) at flat indices of the rows."""
        return self.lm_head(head.at_sites(states.hidden, positions))

    def _embed(self, rows: Rows, table: nn.Embedding) -> Tensor:
        told = rows.languages >= 0
        if self.settings.languages == "slots":
            told &= rows.parts == 1
        languages = table(rows.languages.clamp(min=0)) * told[..., None]
        embedded: Tensor = self.model.get_input_embeddings()(rows.ids) + languages
        return embedded

    def _implementation(self, rows: Rows) -> Implementation:
        if self.settings.attention == "auto":
            return fastest(rows, self.model.config, self._query_dtype(rows))
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


def _freeze_body(model: Any) -> None:
    """Freeze all of the base model but the part that holds the word embeddings.

    That part has the positions and a norm too, in most architectures; MetaXLM (section 5.4) trains
    "the embedding layers and the language modeling head".
    """
    words = model.get_input_embeddings()
    for part in model.base_model.children():
        if all(module is not words for module in part.modules()):
            part.requires_grad_(requires_grad=False)


def positions_of(model: Any) -> tuple[int, int]:
    """The id of a sequence's first position, and how many there are.

    Models after RoBERTa keep the first ids of the table for padding; their table says so. A model
    without a table turns its queries and keys instead, and was trained up to its config's limit.
    """
    for name, module in model.base_model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            return first, module.num_embeddings - first
    return 0, int(model.config.max_position_embeddings)
