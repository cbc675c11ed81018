"""Held-out scores: the same model gives the same numbers, whatever was drawn before."""

import torch
from accelerate import Accelerator

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.models import Encoder, ModelConfig
from isoglot.objectives import BTMLM, MLM, MoCo
from isoglot.objectives.contrast import QueueConfig
from isoglot.pretrain.hooks import Validation
from isoglot.pretrain.trainee import Trainee

OBJECTIVES = {
    "mlm": MLM(),
    "btmlm": BTMLM(choice="sample", temperature=3.0),
    "moco": MoCo(queue=QueueConfig(size=16)),
}
STREAMS = {
    "text": TextStream(objectives=("mlm", "btmlm"), unit="sentence"),
    "parallel": ParallelStream(objectives=("moco",)),
}


def test_two_validations_compare(corpus):
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", layers=2, hidden=32, heads=2, max_positions=96, dropout=0.3)
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    trainee = Trainee(encoder, OBJECTIVES, corpus).train()
    accelerator = Accelerator(cpu=True)
    shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
    validation = Validation(corpus, STREAMS, OBJECTIVES, shape, accelerator, most=10)
    queue = trainee.state_dict()["objectives.moco.queue.entries"].clone()
    before = torch.get_rng_state()
    first = validation(trainee)
    assert torch.equal(torch.get_rng_state(), before), "training draws what it would have drawn"
    torch.rand(17)
    assert validation(trainee) == first
    assert trainee.training
    assert validation(trainee.eval()) == first, "dropout is off, whatever the trainee was doing"
    assert torch.equal(trainee.state_dict()["objectives.moco.queue.entries"], queue)
    assert {f"valid/{name}/aa perplexity" for name in ("mlm", "btmlm")} <= first.keys()
    assert "valid/moco/mean loss" in first
