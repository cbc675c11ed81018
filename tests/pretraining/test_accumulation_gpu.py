"""Both passes over a micro-batch draw the same dropout on an accelerator, compiled or not."""

from __future__ import annotations

import pytest
import torch

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.whole_step import WholeStep
from isoglot.types import Cursor
from tests.pretraining.splits import STREAMS, VARIANTS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator"),
]


@pytest.mark.parametrize("compiled", [False, True])
def test_both_passes_have_the_same_dropout(corpus: Corpus, compiled: bool) -> None:
    objectives = VARIANTS["in-batch and MLM"]
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=64, num_heads=2, max_positions=128, dropout=0.1
    )
    encoder = Encoder.build(settings, corpus.vocabulary)
    module = TrainModule(encoder, objectives, corpus).cuda().train()
    if compiled:
        module.compile()
    streams = dict(STREAMS[name] for name in objectives)
    opened = open_streams(corpus, streams, objectives, row_length=128)
    shape = BatchConfig(rows=8, micro_rows=4, row_length=128)
    batches = next(Loader(corpus, opened, shape, pad_targets=True).steps(Cursor()))
    asked = WholeStep(names=["moco"], states_only=True)
    first = []
    with torch.set_grad_enabled(module.encoder.is_compiled):
        for batch in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                first.append(module(batch.to("cuda"), whole_step=asked).without_graph())
    for batch, before in zip(batches, first, strict=True):
        again = WholeStep(names=["moco"], random=before.random)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            second = module(batch.to("cuda"), whole_step=again)
        for marker, states in before.compared["moco"].states.items():
            found = second.compared["moco"].states[marker].detach()
            # another mask would change the states by tenths
            torch.testing.assert_close(found, states, rtol=0, atol=0.02)
    assert not torch.equal(
        first[0].compared["moco"].states["query"][:1], first[1].compared["moco"].states["query"][:1]
    )
