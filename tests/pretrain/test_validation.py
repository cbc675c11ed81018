"""Held-out scores: the same model gives the same numbers, whatever was drawn before."""

import torch
from accelerate import Accelerator

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.models import Encoder, ModelConfig
from isoglot.objectives import BTMLM, MLM, TLM, MoCo
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


def test_a_language_whose_held_out_pairs_do_not_fit_is_left_out(corpus):
    """Few are held out: that none of them fits is no reason to stop a training."""
    table = corpus.table("pairs", "aa-bb", "heldout")
    shortest = int((table.lengths("first") + table.lengths("second")).min()) + 4
    streams = {"parallel": ParallelStream(objectives=("tlm",), languages=("aa-bb",))}
    read = []
    for length in (shortest, shortest - 1):
        shape = BatchConfig(rows=4, micro_rows=4, row_length=length)
        validation = Validation(
            corpus, streams, {"tlm": TLM()}, shape, Accelerator(cpu=True), most=10
        )
        read.append([language for _, _, language, _ in validation._loaders])
    assert read == [["aa-bb"], []]
