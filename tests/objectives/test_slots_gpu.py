"""No leak between a slot and its own sentence, on an accelerator, under both masks."""

import numpy as np
import pytest
import torch

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.camlm import CAMLM
from isoglot.types import Pair, Text
from tests.batching.fakes import VOCABULARY
from tests.objectives.laid_out import LANGUAGES, rows_of, sensitivity

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator"),
]


def encoder_of(attention):
    torch.manual_seed(1)
    settings = ModelConfig(
        size="tiny", num_layers=4, hidden_size=64, num_heads=2, max_positions=256, dropout=0.0,
        attention=attention,
    )  # fmt: skip
    encoder = Encoder.from_scratch(settings, 1000, 1, cls_id=0, sep_id=2, languages=LANGUAGES)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 2:
                weight.normal_(std=0.3)
    return encoder.cuda().eval()


def sensitivity_of(encoder, rows, site):
    # cuDNN has no float32
    bf16 = encoder.settings.attention == "cudnn"
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
        return sensitivity(encoder, rows, site)


@pytest.mark.parametrize("attention", ["sdpa", "flex", "cudnn"])
def test_camlm_slots_do_not_depend_on_their_own_sentence(attention):
    encoder = encoder_of(attention)
    rng = np.random.default_rng(0)
    pair = Pair(
        first=rng.integers(4, 990, 40).astype(np.int32),
        second=rng.integers(4, 990, 50).astype(np.int32),
        first_language=3,
        second_language=4,
    )
    made = CAMLM().build(pair, VOCABULARY, rng)
    rows, starts = rows_of(made, length=256)
    for number, (start, sequence) in enumerate(zip(starts, made, strict=True)):
        own, other = starts[1 - number], made[1 - number]
        for slot in sequence.markers["slots"]:
            gradient = sensitivity_of(encoder, rows.to("cuda"), start + int(slot))
            assert (gradient[own : own + len(other)] == 0).all()
            assert (gradient[start : start + len(sequence)] > 0).all()


@pytest.mark.parametrize("attention", ["sdpa", "flex", "cudnn"])
def test_btmlm_slots_do_not_depend_on_each_other(attention):
    encoder = encoder_of(attention)
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 990, 60).astype(np.int32)
    text = Text(ids=ids, sentences=np.zeros_like(ids), language=0, target_language=2)
    sequence = BTMLM().build(text, VOCABULARY, rng)[1]
    rows, (start,) = rows_of([sequence], length=256)
    slots = (start + sequence.markers["slots"]).tolist()
    for slot in slots:
        gradient = sensitivity_of(encoder, rows.to("cuda"), slot)
        assert (gradient[[other for other in slots if other != slot]] == 0).all()
        assert (gradient[start : start + 62] > 0).all()
