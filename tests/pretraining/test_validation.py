"""Held-out scores: the same model gives the same numbers, whatever was drawn before."""

from types import SimpleNamespace

import torch
from accelerate import Accelerator

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import LoggingConfig, StageConfig
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.validation import Validation

OBJECTIVES = {
    "mlm": MLM(),
    "btmlm": BTMLM(decoding="sample", temperature=3.0),
    "moco": MoCo(queue=QueueConfig(size=16)),
}
STREAMS = {
    "text": TextStream(objectives=("mlm", "btmlm"), unit="sentence"),
    "parallel": ParallelStream(objectives=("moco",)),
}


def make_validation(corpus, streams, objectives, shape):
    context = SimpleNamespace(
        corpus=corpus,
        objectives=objectives,
        accelerator=Accelerator(cpu=True),
        config=SimpleNamespace(batch=shape, logging=LoggingConfig(validate_examples=10)),
    )
    return Validation(context, StageConfig(steps=1, streams=streams))  # type: ignore[arg-type]


def test_two_validations_compare(corpus):
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96, dropout=0.3
    )
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    train_module = TrainModule(encoder, OBJECTIVES, corpus).train()
    shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
    validation = make_validation(corpus, STREAMS, OBJECTIVES, shape)
    queue = train_module.state_dict()["objectives.moco.queue.entries"].clone()
    before = torch.get_rng_state()
    first = validation(train_module)
    assert torch.equal(torch.get_rng_state(), before), "training draws what it would have drawn"
    torch.rand(17)
    assert validation(train_module) == first
    assert train_module.training
    assert validation(train_module.eval()) == first, (
        "dropout is off, whatever the trainee was doing"
    )
    assert torch.equal(train_module.state_dict()["objectives.moco.queue.entries"], queue)
    assert {f"valid/{name}/aa/perplexity" for name in ("mlm", "btmlm")} <= first.keys()
    assert "valid/moco/mean/loss" in first


def test_a_language_whose_held_out_pairs_do_not_fit_is_left_out(corpus):
    """Few are held out: that none of them fits is no reason to stop a training."""
    table = corpus.table("pairs", "aa-bb", "heldout")
    shortest = int((table.lengths("first") + table.lengths("second")).min()) + 4
    streams = {"parallel": ParallelStream(objectives=("tlm",), languages=("aa-bb",))}
    read = []
    for length in (shortest, shortest - 1):
        shape = BatchConfig(rows=4, micro_rows=4, row_length=length)
        validation = make_validation(corpus, streams, {"tlm": TLM()}, shape)
        read.append([language for _, _, language, _ in validation._loaders])
    assert read == [["aa-bb"], []]
