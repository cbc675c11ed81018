"""Sequences laid into rows by hand, encoders to read them, and a slow reference for slots."""

from __future__ import annotations

from collections.abc import Sequence as List

import numpy as np
import torch
from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

from isoglot.batching.builder import RowBuffer
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.types import Rows, Sequence

LANGUAGES = ("aa", "bb", "cc", "dd", "ee", "ff")


def rows_of(*rows: List[Sequence], length: int = 64) -> tuple[Rows, list[int]]:
    """The sequences of each row one after the other, and where each begins (flat)."""
    canvas = RowBuffer(len(rows), length, 1)
    starts = []
    for number, row in enumerate(rows):
        offset = 0
        for sequence in row:
            starts.append(canvas.put(sequence, number, offset))
            offset += len(sequence)
    return canvas.rows(), starts


def make_encoder(
    languages: str = "slots", size: int = 1000, layers: int = 4, dropout: float = 0.0
) -> Encoder:
    """A random encoder in which everything that is seen shows."""
    torch.manual_seed(1)
    settings = ModelConfig(
        size="tiny",
        num_layers=layers,
        hidden_size=32,
        num_heads=2,
        max_positions=128,
        dropout=dropout,
        language_embeddings=languages,  # type: ignore[arg-type]
    )
    encoder = Encoder.from_scratch(
        settings, size, 1, cls_id=0, sep_id=2, languages=LANGUAGES
    ).double()
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            if weight.dim() == 2:
                weight.normal_(std=0.3)
            elif name.endswith("bias"):
                weight.normal_(std=0.1)
    return encoder.eval()


def sensitivity(encoder: Encoder, rows: Rows, site: int, word: int = 7) -> torch.Tensor:
    """How much the logit of a word at a flat index changes with each token's word embedding."""
    kept: list[torch.Tensor] = []

    def keep(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.retain_grad()
        kept.append(output)

    handle = encoder.model.get_input_embeddings().register_forward_hook(keep)
    states = encoder(rows).hidden.flatten(0, 1)
    handle.remove()
    encoder.model.lm_head(states[site])[word].backward()
    gradient = kept[0].grad
    assert gradient is not None
    return gradient.flatten(0, 1).abs().sum(dim=1)


def reference_log_probabilities(
    encoder: Encoder, sequence: Sequence, sees: np.ndarray
) -> torch.Tensor:
    """(tokens, words): one sequence alone through transformers' own eager attention.

    `sees[i, j]` says whether token i sees token j. Language vectors go onto part 1 only.
    """
    config = XLMRobertaConfig.from_dict(encoder.model.config.to_dict())
    config._attn_implementation = "eager"
    model = XLMRobertaForMaskedLM(config).double().eval()
    model.load_state_dict(encoder.model.state_dict())
    ids = torch.from_numpy(sequence.ids.astype(np.int64))[None]
    embedded = model.get_input_embeddings()(ids)
    assert encoder.languages is not None
    for place, (part, language) in enumerate(
        zip(sequence.roles.tolist(), sequence.languages.tolist(), strict=True)
    ):
        if part == 1:
            embedded[0, place] += encoder.languages.weight[language]
    mask = torch.where(torch.from_numpy(sees), 0.0, -torch.inf).double()[None, None]
    positions = torch.from_numpy(sequence.positions.astype(np.int64))[None] + 2
    output = model(inputs_embeds=embedded, attention_mask=mask, position_ids=positions)
    return torch.log_softmax(output.logits[0], dim=-1)
