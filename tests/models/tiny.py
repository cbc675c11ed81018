"""Tiny random encoders and rows, and slow references that share no code with what they check.

Rows that meet every case: all rules, several sequences a row, padding, more than a window.

What comes out of a pass there and back, to compare two ways of doing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import (
    AlbertConfig,
    AutoModelForMaskedLM,
    BertConfig,
    ElectraConfig,
    EuroBertConfig,
    ModernBertConfig,
    RobertaConfig,
    XLMRobertaConfig,
)

from isoglot.models.attention import PACKED_ATTENTION
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.optimizations import configure_dropout
from isoglot.types import ALLOW, MaskRule, Rows

if TYPE_CHECKING:
    from torch import Tensor

    from isoglot.models.encoder import Encoder
    from isoglot.types import Rows

VOCABULARY = 101
LANGUAGES = ("aa", "bb", "cc")
WINDOW = 6
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 72,
    # far larger than usual: what a token sees must show in what comes out
    "initializer_range": 0.3,
}


class OnGPU(torch.Tensor):
    """A tensor that says it is on a GPU, and so does all that is computed from it."""

    is_cuda = property(lambda _: True)


IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
CONFIGS = {
    "xlm-r": lambda: XLMRobertaConfig(**SHAPE, **IDS),
    "roberta": lambda: RobertaConfig(**SHAPE, **IDS),
    "bert": lambda: BertConfig(**SHAPE, **IDS),
    "albert": lambda: AlbertConfig(**SHAPE, **IDS, embedding_size=24),
    "electra": lambda: ElectraConfig(**SHAPE, **IDS, embedding_size=24),
    "eurobert": lambda: EuroBertConfig(**SHAPE, **IDS, num_key_value_heads=1, mask_token_id=3),
    "modernbert": lambda: ModernBertConfig(
        **SHAPE, **IDS, local_attention=2 * WINDOW, global_attn_every_n_layers=3, cls_token_id=0,
        sep_token_id=2,
    ),
}  # fmt: skip
ARCHITECTURES = tuple(CONFIGS)


def tiny_model(
    architecture: str, *, attention: str = PACKED_ATTENTION, seed: int = 0, layers: int = 3
) -> Any:
    """A `*ForMaskedLM` model with random weights."""
    torch.manual_seed(seed)
    config = CONFIGS[architecture]()
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    configure_dropout(config, hidden=None)
    return AutoModelForMaskedLM.from_config(config, attn_implementation=attention).eval()


def saved_model(folder: Path, architecture: str) -> str:
    """A folder with a tiny model, as transformers saves it."""
    tiny_model(architecture, attention="sdpa").save_pretrained(folder)
    return str(folder)


def tiny_encoder(architecture: str, *, layers: int = 3, **settings: Any) -> Encoder:
    """An encoder around a tiny model, in evaluation mode; compiling is quicker with few layers."""
    settings = {"language_embeddings": "none", **settings}
    model = tiny_model(architecture, layers=layers)
    return Encoder(model, ModelConfig(**settings), languages=LANGUAGES).eval()


@dataclass(frozen=True)
class Tokens:
    """One sequence to pack."""

    ids: list[int]
    positions: list[int]
    roles: list[int]
    rule: MaskRule
    languages: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def random_tokens(rng: np.random.Generator, rule: MaskRule, length: int) -> Tokens:
    """A sequence; under a rule with slots, its last third are slots at rising positions."""
    num_slots = 0 if rule is MaskRule.FULL else max(1, length // 3)
    sentence = length - num_slots
    slots = np.sort(rng.choice(length + 4, size=num_slots, replace=False))
    return Tokens(
        ids=rng.integers(4, VOCABULARY, size=length).tolist(),
        positions=[*range(sentence), *slots.tolist()],
        roles=[0] * sentence + [1] * num_slots,
        rule=rule,
        languages=rng.integers(0, len(LANGUAGES), size=length).tolist(),
    )


def pack(rows: list[list[Tokens]], length: int) -> Rows:
    """Rows with these sequences, in order, padded to a length."""
    names = [name for name in Rows.__slots__ if name != "unmasked"]
    columns: dict[str, list[list[int]]] = {name: [] for name in names}
    for row in rows:
        pads = length - sum(map(len, row))
        assert pads >= 0
        own: dict[str, list[int]] = {name: [] for name in names}
        for index, tokens in enumerate(row):
            own["ids"] += tokens.ids
            own["positions"] += tokens.positions
            own["roles"] += tokens.roles
            own["languages"] += tokens.languages
            own["sentences"] += [0] * len(tokens)
            own["rules"] += [int(tokens.rule)] * len(tokens)
            own["sequences"] += [index] * len(tokens)
        for name, fill in (("ids", IDS["pad_token_id"]), ("sequences", -1)):
            own[name] += [fill] * pads
        for name, values in own.items():
            columns[name].append(values + [0] * (length - len(values)))
    return Rows(**{name: torch.tensor(values) for name, values in columns.items()})


def replace(rows: Rows, **changes: torch.Tensor) -> Rows:
    """The same rows with other tensors in some places."""
    return Rows(**{**rows.tensors(), **changes})


def slow_sees(rows: Rows, row: int, query: int, key: int, *, window: int | None = None) -> bool:
    """The mask rule, one pair of tokens at a time."""
    if query == key:
        return True
    sequence = int(rows.sequences[row, query])
    if sequence == -1 or sequence != int(rows.sequences[row, key]):
        return False
    own, other = int(rows.roles[row, query]), int(rows.roles[row, key])
    if not ALLOW[int(rows.rules[row, query])][own][other]:
        return False
    distance = abs(int(rows.positions[row, query]) - int(rows.positions[row, key]))
    return window is None or own != other or distance <= window


def slow_mask(rows: Rows, *, window: int | None = None) -> torch.Tensor:
    """(B, L, L) bool, from a double loop."""
    num_rows, length = rows.ids.shape
    return torch.tensor(
        [
            [
                [slow_sees(rows, b, q, k, window=window) for k in range(length)]
                for q in range(length)
            ]
            for b in range(num_rows)
        ]
    )


def alone(encoder: Encoder, tokens: Tokens) -> torch.Tensor:
    """States (n, D) of one sequence, unpacked, through the bare transformers model.

    Under rule `full` the model is called as anyone would call it; otherwise with a dense mask.
    """
    base = encoder.model.base_model
    ids = torch.tensor([tokens.ids])
    if tokens.rule is MaskRule.FULL:
        return base(input_ids=ids).last_hidden_state[0]
    single = pack([[tokens]], len(tokens))

    def dense(window: int | None) -> torch.Tensor:
        return torch.where(slow_mask(single, window=window), 0.0, -1e30)[:, None]

    local = "sliding_attention" in (getattr(encoder.model.config, "layer_types", None) or ())
    mask = {"full_attention": dense(None), "sliding_attention": dense(WINDOW)}
    return base(
        input_ids=ids,
        position_ids=single.positions + encoder.first_position,
        attention_mask=mask if local else mask["full_attention"],
    ).last_hidden_state[0]


PLAN = (
    ((MaskRule.FULL, 60), (MaskRule.TRANSLATE, 40), (MaskRule.GENERATE, 30)),
    ((MaskRule.GENERATE, 33), (MaskRule.FULL, 50), (MaskRule.FULL, 61)),
)
LENGTH = 144


def mixed_rows(seed: int = 0) -> tuple[list[list[Tokens]], Rows]:
    """The sequences, and the two rows of 144 tokens that they are packed into."""
    rng = np.random.default_rng(seed)
    sequences = [[random_tokens(rng, rule, length) for rule, length in row] for row in PLAN]
    return sequences, pack(sequences, LENGTH)


def states_and_gradients(
    encoder: Encoder, rows: Rows | None = None, *, bf16: bool = False
) -> tuple[Tensor, Tensor]:
    """The states of all real tokens and the gradients of all weights, as two vectors."""
    device = next(encoder.parameters()).device.type
    rows = (rows or mixed_rows()[1]).to(device)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
        hidden = encoder(rows).hidden[rows.sequences >= 0]
    assert hidden.dtype == next(encoder.parameters()).dtype
    (hidden * torch.linspace(-1, 1, hidden.shape[1], device=device)).sum().backward()
    found = [weight.grad.flatten() for weight in encoder.parameters() if weight.grad is not None]
    return hidden.detach().flatten(), torch.cat(found)


def relative(left: Tensor, right: Tensor) -> float:
    """How far one is from the other, in lengths of the other."""
    return ((left - right).norm() / right.norm()).item()
