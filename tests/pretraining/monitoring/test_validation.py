"""Held-out scores: the same model gives the same numbers, whatever was drawn before."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
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
from isoglot.objectives.token_contrast import TokenContrast
from isoglot.pretraining.config import LoggingConfig, StageConfig
from isoglot.pretraining.monitoring.validation import Validation
from isoglot.pretraining.train_module import TrainModule

OBJECTIVES = {
    "mlm": MLM(),
    "btmlm": BTMLM(decoding="sample", temperature=3.0),
    "moco": MoCo(queue=QueueConfig(size=16)),
}
STREAMS = {
    "text": TextStream(objectives=("mlm", "btmlm"), unit="sentence"),
    "parallel": ParallelStream(objectives=("moco",)),
}


def make_validation(corpus, streams, objectives, shape, accelerator=None):
    context = SimpleNamespace(
        corpus=corpus,
        objectives=objectives,
        known_objectives=objectives,
        accelerator=accelerator or Accelerator(cpu=True),
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


def heldout_module(corpus, objectives):
    torch.manual_seed(1)
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=16, num_heads=2, max_positions=96)
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages)
    return TrainModule(encoder, objectives, corpus)


def test_perplexities_are_those_of_the_mean_loss_of_each_language(corpus):
    """Token by token, against the plain model; their mean is over languages, before the exp."""
    objectives = {"mlm": MLM()}
    module = heldout_module(corpus, objectives)
    streams = {"text": TextStream(objectives=("mlm",), unit="sentence")}
    shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
    validation = make_validation(corpus, streams, objectives, shape)
    found, means = validation(module), []
    for objective, _, language, loader in validation._loaders:
        losses = []
        for batch in loader.single_pass(10):
            start, stop = batch.target_slices[objective]
            with torch.no_grad():
                logits = module.encoder.logits_at(
                    module.encoder.eval()(batch.rows), batch.target_positions[start:stop]
                )
            wanted = batch.targets[start:stop]
            losses += (-logits.double().log_softmax(dim=-1)[range(len(wanted)), wanted]).tolist()
        means.append(sum(losses) / len(losses))
        perplexity = found.pop(f"valid/mlm/{language}/perplexity")
        assert perplexity == pytest.approx(math.exp(means[-1]), rel=1e-4)
    mean = math.exp(sum(means) / len(means))
    assert found == {"valid/mlm/mean/perplexity": pytest.approx(mean, rel=1e-4)}


def test_a_metric_with_a_count_of_its_own_is_divided_by_it(corpus):
    """The accuracy of token contrast is a mean over links, its loss over pairs."""
    objectives = {"token_contrast": TokenContrast(min_similarity=-1.0)}
    module = heldout_module(corpus, objectives).eval()
    streams = {"parallel": ParallelStream(objectives=("token_contrast",))}
    shape = BatchConfig(rows=2, micro_rows=2, row_length=96)
    validation = make_validation(corpus, streams, objectives, shape)
    found, means = validation(module), []
    for _, _, language, loader in validation._loaders:
        correct, links = 0.0, 0
        for batch in loader.single_pass(10):
            with torch.no_grad():
                right, number = module(batch)["token_contrast"].ratios["accuracy"]
            correct, links = correct + float(right), links + int(number)
        assert 0 < correct < links
        means.append(correct / links)
        assert found[f"valid/token_contrast/{language}/accuracy"] == pytest.approx(means[-1])
    assert found["valid/token_contrast/mean/accuracy"] == pytest.approx(sum(means) / len(means))
    assert 0 < found["valid/token_contrast/mean/chance"] < 1
    assert found["valid/token_contrast/mean/loss"] > 0


def test_two_processes_share_the_held_out_examples(corpus):
    objectives = {"mlm": MLM(), "moco": OBJECTIVES["moco"]}
    module = heldout_module(corpus, objectives).eval()
    streams = {
        "text": TextStream(objectives=("mlm",), unit="sentence"),
        "parallel": STREAMS["parallel"],
    }
    shape = BatchConfig(rows=4, micro_rows=2, row_length=96)
    alone = make_validation(corpus, streams, objectives, shape)
    sums = []
    for rank in range(2):
        accelerator = SimpleNamespace(
            num_processes=2,
            process_index=rank,
            device=torch.device("cpu"),
            autocast=nullcontext,
            reduce=lambda tensor: tensor,
        )
        part = make_validation(corpus, streams, objectives, shape, accelerator)
        with torch.no_grad():
            sums.append(part._sums(module))
        found = part._retrieval(module)
        shares = {name: value for name, value in found.items() if name.endswith("/retrieval")}
        measured = {name for name, value in shares.items() if value and "/mean/" not in name}
        assert len(measured) <= 1, "each process scores its own pairs of languages"
    with torch.no_grad():
        expected = alone._sums(module)
    counted = expected[:, 1]
    assert torch.equal(sums[0][:, 1] + sums[1][:, 1], counted)
    assert all((one[:, 1] < counted).any() for one in sums)
    assert torch.allclose((sums[0] + sums[1])[:, 0], expected[:, 0], rtol=1e-4)


def test_labels_name_the_stream_where_an_objective_reads_several(corpus):
    objectives = {"mlm": MLM()}
    text = TextStream(objectives=("mlm",), unit="sentence", languages=("aa",))
    shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
    for streams, expected in (
        ({"text": text}, ["mlm"]),
        ({"mine": text}, ["mine.mlm"]),
        ({"text": text, "more": text}, ["mlm", "more.mlm"]),
    ):
        validation = make_validation(corpus, streams, objectives, shape)
        assert [label for _, label, _, _ in validation._loaders] == expected
