"""Held-out examples are compared with all others, whatever the rows of a micro-batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream
from isoglot.corpus import Corpus
from isoglot.objectives.base import Objective
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.moco import MoCo
from tests.objectives.naive_moco import losses_of, make_train_module
from tests.pretraining.monitoring.test_validation import make_validation
from tests.pretraining.splits import STREAMS, VARIANTS, make_module

IN_BATCH = MoCo(key_encoder="shared", in_batch_negatives=True, queue=QueueConfig(size=0))


def test_the_loss_is_that_of_each_pair_among_all_held_out_pairs(corpus: Corpus) -> None:
    module = make_train_module(corpus, IN_BATCH, tlm=False)
    streams = {"parallel": ParallelStream(objectives=("moco",))}
    shape = BatchConfig(rows=8, micro_rows=2, row_length=32)
    validation = make_validation(corpus, streams, {"moco": IN_BATCH}, shape)
    found = validation(module)
    for _, _, language, loader in validation._loaders:
        batches = list(loader.single_pass(10))
        assert len(batches) > 1
        with torch.no_grad():
            losses = losses_of(module.eval(), IN_BATCH, *batches)
        assert found[f"valid/moco/{language}/loss"] == pytest.approx(losses.mean().item())
        assert found[f"valid/moco/{language}/chance"] == pytest.approx(1 / len(losses))


@pytest.mark.parametrize("variant", ["in-batch and MLM", "XLM-K", "batch normalization"])
def test_the_rows_of_a_micro_batch_do_not_change_it(knowing: Corpus, variant: str) -> None:
    objectives = VARIANTS[variant]
    module = make_module(knowing, variant)
    streams = dict(STREAMS[name] for name in objectives)
    scores = []
    for rows, micro_rows in ((4, 4), (8, 2)):
        shape = BatchConfig(rows=rows, micro_rows=micro_rows, row_length=48)
        scores.append(make_validation(knowing, streams, objectives, shape)(module))
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def test_micro_batches_by_themselves_do(corpus: Corpus) -> None:
    by_itself: dict[str, Objective] = {"moco": replace(IN_BATCH, negatives="micro_batch")}
    module = make_train_module(corpus, by_itself["moco"], tlm=False)
    streams = {"parallel": ParallelStream(objectives=("moco",))}
    losses = []
    for micro_rows in (2, 8):
        shape = BatchConfig(rows=8, micro_rows=micro_rows, row_length=32)
        found = make_validation(corpus, streams, by_itself, shape)(module)
        losses.append(found["valid/moco/mean/loss"])
    assert losses[0] < losses[1] - 0.1
