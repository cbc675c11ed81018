"""A step of contrastive objectives: the same losses, gradients and queues, however it is split.

The reference is plain autograd on one process with one micro-batch, in float64.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.multiprocessing.spawn import start_processes

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.base import ForwardResult
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.compared import Compared
from isoglot.objectives.moco import MomentumContrast
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.whole_step import WholeStep
from isoglot.types import Batch, Cursor
from tests.pretraining.splits import (
    VARIANTS,
    Case,
    grouped,
    heldout_scores,
    make_module,
    obvious_step,
    one_of_several,
    one_step,
    take_step,
)

_STEPS: dict[str, Any] = {}


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)


def expected_of(corpus: Corpus, variant: str) -> Any:
    """The step of a variant and what it should give, computed once."""
    if variant not in _STEPS:
        batches = one_step(corpus, variant)
        _STEPS[variant] = batches, obvious_step(corpus, variant, batches)
    return _STEPS[variant]


def assert_same(found: Any, expected: Any) -> None:
    losses, metrics, left = found
    assert losses == pytest.approx(expected[0], rel=1e-9)
    assert metrics == pytest.approx(expected[1], rel=1e-9)
    missing = set(expected[2]) - set(left)
    assert not missing
    for name, value in expected[2].items():
        torch.testing.assert_close(left[name], value, rtol=1e-7, atol=1e-11, msg=name)


@st.composite
def compositions(draw: st.DrawFn) -> list[int]:
    """Numbers that add up to 8."""
    cuts = sorted(draw(st.sets(st.integers(1, 7))))
    return [b - a for a, b in zip([0, *cuts], [*cuts, 8], strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_is_the_same_in_unequal_micro_batches(
    knowing: Corpus, accelerator: Accelerator, variant: str
) -> None:
    """One of them has no examples to compare."""
    batches, expected = expected_of(knowing, variant)
    assert any(name in VARIANTS[variant] for name in ("moco", "entity"))
    assert not {"moco", "entity", "entailment"} & set(batches[2].markers)
    module = make_module(knowing, variant)
    result, left = take_step(module, variant, grouped(batches, [2, 1, 5]), accelerator)
    assert_same((result.losses, result.metrics, left), expected)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@given(sizes=compositions())
@settings(max_examples=5)
def test_a_step_is_the_same_in_any_micro_batches(
    knowing: Corpus, accelerator: Accelerator, variant: str, sizes: list[int]
) -> None:
    batches, expected = expected_of(knowing, variant)
    module = make_module(knowing, variant)
    result, left = take_step(module, variant, grouped(batches, sizes), accelerator)
    assert_same((result.losses, result.metrics, left), expected)


def test_a_micro_batch_by_itself_is_another_loss(
    knowing: Corpus, accelerator: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`negatives: micro_batch`: each split has candidates of its own."""
    batches, _ = expected_of(knowing, "in-batch and MLM")
    moco = replace(VARIANTS["in-batch and MLM"]["moco"], negatives="micro_batch")  # type: ignore[call-arg]
    monkeypatch.setitem(VARIANTS, "by itself", {**VARIANTS["in-batch and MLM"], "moco": moco})
    module = make_module(knowing, "by itself")
    losses = [
        take_step(module, "by itself", grouped(batches, sizes), accelerator)[0].losses["moco"]
        for sizes in ([8], [4, 4], [2, 2, 2, 2])
    ]
    assert losses[0] > losses[1] + 0.1
    assert losses[1] > losses[2] + 0.1
    alone = [module(batch)["moco"].total.item() for batch in grouped(batches, [4, 4])]
    count = sum(batch.num_targets["moco"] for batch in batches)
    assert losses[1] == pytest.approx(sum(alone) / count, rel=1e-12)


def test_both_passes_of_a_micro_batch_have_the_same_dropout(
    knowing: Corpus, accelerator: Accelerator
) -> None:
    """And every micro-batch another; the keys of a momentum encoder are encoded once."""
    variant = "momentum encoder, queue and in-batch"
    batches = grouped(expected_of(knowing, variant)[0], [3, 3, 2])
    module = make_module(knowing, variant, dropout=0.3)
    moco = module.objective("moco")
    assert isinstance(moco, MomentumContrast)
    states: list[torch.Tensor] = []
    compared, encoded = moco.compared, moco._encode_keys
    calls: list[object] = []

    def noted(result: ForwardResult) -> Compared:
        found = compared(result)
        states.append(found.states["query"].detach().clone())
        return found

    def counted(name: str, batch: Batch) -> torch.Tensor | None:
        calls.append(name)
        return encoded(name, batch)

    moco.compared, moco._encode_keys = noted, counted  # type: ignore[method-assign]
    take_step(module, variant, batches, accelerator)
    assert len(states) == 6
    assert len(calls) == 3
    for first, second in zip(states[:3], states[3:], strict=True):
        assert torch.equal(first, second)
    with torch.no_grad():
        other = module(batches[0], whole_step=WholeStep(names=["moco"]))
    assert not torch.equal(other.compared["moco"].states["query"], states[0]), "dropout is on"


def test_tokens_drawn_before_a_pass_are_drawn_alike_before_both(
    knowing: Corpus, accelerator: Accelerator
) -> None:
    """BTMLM writes drawn tokens into the rows; what is compared is the same in both passes."""
    objectives = {"btmlm": BTMLM(decoding="sample"), "moco": VARIANTS["in-batch and MLM"]["moco"]}
    torch.manual_seed(0)
    config = ModelConfig(
        size="tiny", num_layers=1, hidden_size=16, num_heads=2, max_positions=96, dropout=0.2
    )
    encoder = Encoder.build(config, knowing.vocabulary, languages=knowing.languages)
    module = TrainModule(encoder, objectives, knowing).double().train()
    streams = {
        "text": TextStream(objectives=("btmlm",), unit="sentence"),
        "parallel": ParallelStream(objectives=("moco",)),
    }
    opened = open_streams(knowing, streams, objectives, row_length=96)
    loader = Loader(knowing, opened, BatchConfig(rows=4, micro_rows=2, row_length=96))
    for batch in next(loader.steps(Cursor())):
        first = module(batch, whole_step=WholeStep(names=["moco"], states_only=True))
        written = batch.rows.ids.clone()
        torch.rand(7)
        again = WholeStep(names=["moco"], random=first.random)
        second = module(batch, whole_step=again)
        assert torch.equal(batch.rows.ids, written), "the same tokens are drawn"
        assert set(second.losses) == {"btmlm"}
        for marker, states in first.compared["moco"].states.items():
            assert torch.equal(second.compared["moco"].states[marker], states)


# micro-batch m belongs to process m mod world, and every process has as many
TWO: list[Case] = [
    *(("ddp", variant, [5, 3]) for variant in VARIANTS),
    *(("ddp", variant, [3, 1, 1, 3]) for variant in ("in-batch and MLM", "batch normalization")),
    *(("fsdp", variant, [3, 1, 1, 3]) for variant in VARIANTS),
]
FOUR: list[Case] = [
    ("ddp", "XLM-K", [2, 1, 2, 3]),
    ("hsdp", "in-batch and MLM", [2, 1, 2, 3]),
    ("hsdp", "momentum encoder, queue and in-batch", [2, 1, 2, 3]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("world", "cases"), [(2, TWO), (4, FOUR)])
def test_a_step_is_the_same_on_several_processes(
    knowing: Corpus, tmp_path: Path, world: int, cases: list[Case]
) -> None:
    """With and without a second pass; of four processes, one has nothing to compare."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    given = (world, str(store.port), str(knowing.folder), cases, tmp_path)
    start_processes(one_of_several, given, nprocs=world, join=True, start_method="forkserver")
    for (strategy, variant, sizes), rank in itertools.product(cases, range(world)):
        found = torch.load(tmp_path / f"{strategy}-{variant}-{len(sizes)}-{rank}.pt")
        assert_same(found, expected_of(knowing, variant)[1])
    scores = heldout_scores(knowing, "batch normalization")
    for rank in range(world):
        assert torch.load(tmp_path / f"heldout-{rank}.pt") == pytest.approx(scores, rel=1e-9)
