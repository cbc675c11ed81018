"""Open a model folder for scoring, which asks less of it than training does.

Scoring puts one sequence in a row, so an architecture that cannot keep packed sequences apart
(DeBERTa, XLM, DistilBERT, MPNet, RemBERT) is run as transformers runs it, with a padding mask. And
only probes read the LM head: a folder without one is refused when it is asked, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn
from typing_extensions import override

from isoglot.errors import ModelError
from isoglot.models import Encoder, ModelConfig, States
from isoglot.models.attention import kernels
from isoglot.models.encoder import positions_of
from isoglot.models.head import LMHead
from isoglot.models.opening import PackingError, open_and_report, open_plain
from isoglot.models.probe import probe

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from isoglot.types import Rows


class PlainEncoder(Encoder):
    """A transformers encoder as it is, over rows that hold one sequence each."""

    def __init__(self, model: Any) -> None:
        # Encoder's own wraps a model whose attention was exchanged, which this one's cannot be
        nn.Module.__init__(self)
        self.model = model
        self.languages = None
        self.first_position, self.max_positions = positions_of(model)

    @override
    def forward(self, rows: Rows, *, layers: bool = False) -> States:
        with kernels("sdpa"):
            output = self.model(
                input_ids=rows.ids,
                attention_mask=(rows.sequences >= 0).long(),
                output_hidden_states=layers,
            )
        return States(hidden=output.last_hidden_state, layers=output.hidden_states)


class NoHead(LMHead):
    """In the place of an LM head that cannot be asked: says why when it is."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @override
    def __call__(self, hidden: Tensor) -> Tensor:
        raise ModelError(self._reason)


def open_encoder(folder: Path) -> Encoder:
    """The folder's encoder over packed rows where it can, or else as it is."""
    name = str(folder)
    try:
        model, _, missing = open_and_report(name, dropout=None)
        # every batch of sentences has a shape of its own, and FlexAttention compiles for each
        encoder = Encoder(model, ModelConfig(start=name, attention="sdpa"))
        probe(encoder, name)
    except PackingError:
        plain = PlainEncoder(open_plain(name))
        plain.lm_head = NoHead(
            f"{name}, a {plain.model.config.model_type} model, cannot be probed: of an "
            "architecture that cannot run packed rows only the encoder is opened. Leave probes out."
        )
        return plain
    if missing:
        encoder.lm_head = NoHead(_without_head(folder))
    return encoder


def _without_head(folder: Path) -> str:
    """Why a model cannot be probed, and what can be instead."""
    kept = folder / "encoder"
    if (kept / "config.json").is_file():
        return f"{folder} is fine-tuned and has no LM head to probe. Give {kept}, which has one."
    return f"{folder} has no LM head, and probing needs a masked language model. Leave probes out."
