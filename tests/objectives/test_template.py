"""The objective to copy: what it builds, its loss beside a slow reference, and a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.objectives.base import ForwardResult
from isoglot.objectives.template import DetectionHead, ReplacedTokenDetection
from isoglot.pretraining.config import StageConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_step import StepResult
from isoglot.types import IGNORE, Pair
from tests.batching.fakes import VOCABULARY
from tests.pretraining import driver

PAIR = Pair(
    first=np.arange(100, 110, dtype=np.int32),
    second=np.arange(200, 220, dtype=np.int32),
    first_language=3,
    second_language=4,
)
NAME = "isoglot.objectives.template:ReplacedTokenDetection"


def test_what_it_builds() -> None:
    (sequence,) = ReplacedTokenDetection(rate=0.2).build(PAIR, VOCABULARY, np.random.default_rng(0))
    original = np.array([0, *range(100, 110), 2, 2, *range(200, 220), 2])
    assert len(sequence) == ReplacedTokenDetection().lengths(np.array([[10, 20]], np.int32))[0, 0]
    changed = sequence.ids != original
    judged, labels = sequence.markers["judged"], sequence.labels["replaced"]
    assert judged.tolist() == np.flatnonzero(original >= 100).tolist()
    assert labels.tolist() == changed[judged].astype(int).tolist()
    assert changed.sum() == 6, "a fifth of thirty tokens"
    assert not changed[original < 100].any()
    assert (sequence.targets == IGNORE).all()
    assert sequence.languages.tolist() == [3] * 12 + [4] * 22
    assert sequence.sentences.tolist() == [0] * 12 + [1] * 22


def test_a_token_replaced_by_itself_is_the_original() -> None:
    only = SimpleNamespace(
        cls=0, sep=2, is_special=VOCABULARY.is_special, ordinary=np.array([105, 106])
    )
    pair: Any = Pair(
        first=np.full(40, 105, np.int32),
        second=np.full(40, 106, np.int32),
        first_language=0,
        second_language=1,
    )
    given: Any = only
    (sequence,) = ReplacedTokenDetection(rate=1.0).build(pair, given, np.random.default_rng(0))
    changed = sequence.ids[sequence.markers["judged"]] != [105] * 40 + [106] * 40
    assert 0 < changed.sum() < 80
    assert sequence.labels["replaced"].tolist() == changed.astype(int).tolist()


def result_of(states: torch.Tensor, places: list[int] | None, labels: list[int]) -> ForwardResult:
    batch: Any = SimpleNamespace(
        markers={} if places is None else {"mine": {"judged": torch.tensor(places)}},
        labels={"mine": {"replaced": torch.tensor(labels)}},
    )
    nothing = states.sum() * torch.zeros(0, dtype=states.dtype)
    return ForwardResult(
        batch=batch, name="mine", hidden_states=states, target_losses=nothing, correct=nothing
    )


def test_the_loss_is_a_sum_of_cross_entropies() -> None:
    torch.manual_seed(0)
    module = DetectionHead(5).double()
    states = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    places, labels = [1, 2, 5, 7], [0, 1, 1, 0]
    found = module.loss(result_of(states, places, labels))
    scores = [float(module.head(states.flatten(0, 1)[place]).detach()) for place in places]
    chances = [1 / (1 + np.exp(-score)) for score in scores]
    terms = [np.log(p if label else 1 - p) for p, label in zip(chances, labels, strict=True)]
    assert float(found.total.detach()) == pytest.approx(-sum(terms), rel=1e-12)
    said = [int(score > 0) for score in scores]
    assert int(found.metrics["accuracy"]) == sum(s == w for s, w in zip(said, labels, strict=True))
    hits, number = found.ratios["recall"]
    assert (int(hits), int(number)) == (said[1] + said[2], 2)
    (gradient,) = torch.autograd.grad(found.total, states)
    read = gradient.flatten(0, 1).abs().sum(dim=1) > 0
    assert read.nonzero()[:, 0].tolist() == places


def test_a_micro_batch_without_pairs_has_no_loss() -> None:
    states = torch.zeros(1, 2, 5, requires_grad=True)
    empty = DetectionHead(5).loss(result_of(states, None, []))
    assert empty.total == 0
    assert empty.total.requires_grad
    other = DetectionHead(5).loss(result_of(states, [0], [1]))
    assert (list(empty.metrics), list(empty.ratios)) == (list(other.metrics), list(other.ratios))


def test_a_run_learns_to_tell_them(corpus, tmp_path) -> None:
    """Beside MLM, in micro-batches of which some have no pair; its metrics are validated too."""
    streams = {
        "text": TextStream(objectives=("mlm",), share=0.7),
        "parallel": ParallelStream(objectives=(NAME,), share=0.3),
    }
    steps: list[StepResult] = []
    config = driver.config(
        stages=(StageConfig(steps=12, streams=streams),),
        batch=BatchConfig(rows=4, micro_rows=1, row_length=96),
    )
    pretrain(config, corpus, tmp_path, on_step=steps.append)
    losses = [step.losses[NAME] for step in steps]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    assert 0 <= steps[-1].metrics[f"{NAME}/recall"] <= 1
    assert f"valid/{NAME}/mean/accuracy" in (tmp_path / "metrics.jsonl").read_text()
