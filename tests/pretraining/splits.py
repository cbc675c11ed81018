"""A step of every contrastive objective beside MLM, and the same step in other micro-batches.

Also the processes of `test_accumulation.py`: each takes its share of the micro-batches.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch.distributed.tensor import DTensor

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import MentionStream, ParallelStream, TextStream, TripleStream
from isoglot.corpus import Corpus
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.base import Objective
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.processes.distributed import DistributedConfig, Strategy, share_module
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext, StepResult, training_steps
from isoglot.types import Batch, Cursor, Rows

NO_QUEUE, QUEUE = QueueConfig(size=0), QueueConfig(size=12)
VARIANTS: dict[str, dict[str, Objective]] = {
    "in-batch and MLM": {
        "mlm": MLM(weight=0.7),
        "moco": MoCo(
            weight=1.3,
            key_encoder="shared",
            in_batch_negatives=True,
            symmetric=True,
            queue=NO_QUEUE,
            projection=ProjectionConfig(layers=2, size=8, normalize="after"),
        ),
    },
    "momentum encoder, queue and in-batch": {
        "mlm": MLM(),
        "moco": MoCo(in_batch_negatives=True, queue=QUEUE, pooling="mean"),
    },
    "both sides trained, and a queue": {
        "moco": MoCo(key_encoder="shared", in_batch_negatives=True, queue=QUEUE, layer=1)
    },
    "XLM-K": {
        "mlm": MLM(),
        "entity": EntityPrediction(queue=QUEUE),
        "entailment": ObjectEntailment(queue=QUEUE, weight=0.5),
    },
    "batch normalization": {
        "entity": EntityPrediction(variant="released", queue=QUEUE, pooling="mean"),
        "mlm": MLM(),
    },
}
STREAMS = {
    "mlm": ("text", TextStream(objectives=("mlm",), unit="sentence")),
    "moco": ("parallel", ParallelStream(objectives=("moco",), order="shuffled")),
    "entity": ("mentions", MentionStream(objectives=("entity",), max_tokens=40)),
    "entailment": ("triples", TripleStream(objectives=("entailment",))),
}
LENGTH = 96
Case = tuple[Strategy, str, list[int]]
"""A step of some variant on several processes, in micro-batches of so many rows / 2."""


def make_module(corpus: Corpus, variant: str, dropout: float = 0.0) -> TrainModule:
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny",
        num_layers=2,
        hidden_size=16,
        num_heads=2,
        max_positions=LENGTH,
        dropout=dropout,
    )
    encoder = Encoder.build(settings, corpus.vocabulary)
    module = TrainModule(encoder, VARIANTS[variant], corpus).double()
    for name in VARIANTS[variant]:
        module.objective(name).on_stage_start()
    return module.train()


def one_step(corpus: Corpus, variant: str) -> list[Batch]:
    """The micro-batches of a step: eight of two rows, of which the third has MLM alone, if any."""
    objectives = VARIANTS[variant]
    streams = dict(STREAMS[name] for name in objectives)
    opened = open_streams(corpus, streams, objectives, row_length=LENGTH)
    loader = Loader(corpus, opened, BatchConfig(rows=16, micro_rows=2, row_length=LENGTH))
    batches: list[Batch] = next(loader.steps(Cursor()))
    batches[2] = without_contrast(batches[2])
    return batches


def without_contrast(batch: Batch) -> Batch:
    """The same without the examples of contrastive objectives."""

    def of_others(tensors: dict[str, Any]) -> dict[str, Any]:
        return {name: one for name, one in tensors.items() if name == "mlm"}

    # the targets of one objective are a slice of all
    start, stop = batch.target_slices.get("mlm", (0, 0))
    return replace(
        batch,
        target_positions=batch.target_positions[start:stop],
        targets=batch.targets[start:stop],
        target_weights=batch.target_weights[start:stop],
        target_slices={
            name: (0, stop - start) if name == "mlm" else (0, 0) for name in batch.target_slices
        },
        markers=of_others(batch.markers),
        aux_markers=of_others(batch.aux_markers),
        labels=of_others(batch.labels),
        num_targets=dict.fromkeys(batch.num_targets, 0) | of_others(batch.num_targets),
    )


def joined(batches: Sequence[Batch]) -> Batch:
    """Several micro-batches as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    positions, targets, slices, filled = [], [], {}, 0
    for name in first.target_slices:
        begin = filled
        for number, batch in enumerate(batches):
            part = slice(*batch.target_slices[name])
            positions.append(batch.target_positions[part] + number * first.rows.ids.numel())
            targets.append(batch.targets[part])
            filled += part.stop - part.start
        slices[name] = (begin, filled)
    aux = {name: [batch.aux_rows[name] for batch in batches] for name in first.aux_rows}
    return replace(
        first,
        rows=_joined_rows([batch.rows for batch in batches]),
        target_positions=torch.cat(positions),
        targets=torch.cat(targets),
        target_weights=torch.ones(filled),
        target_slices=slices,
        markers=_joined_tensors(batches, "markers", lambda batch, _: batch.rows.ids.numel()),
        aux_rows={name: _joined_rows(rows) for name, rows in aux.items()},
        aux_markers=_joined_tensors(
            batches, "aux_markers", lambda batch, name: batch.aux_rows[name].ids.numel()
        ),
        labels=_joined_tensors(batches, "labels", lambda *_: 0),
        num_targets={
            name: sum(batch.num_targets[name] for batch in batches) for name in first.num_targets
        },
        num_tokens=sum(batch.num_tokens for batch in batches),
    )


def _joined_rows(rows: Sequence[Rows]) -> Rows:
    return Rows(
        **{name: torch.cat([getattr(one, name) for one in rows]) for name in rows[0].tensors()}
    )


def _joined_tensors(
    batches: Sequence[Batch], field: str, width: Any
) -> dict[str, dict[str, torch.Tensor]]:
    """Markers or labels; markers are moved by the tokens of the micro-batches before."""
    found: dict[str, dict[str, list[torch.Tensor]]] = {}
    for number, batch in enumerate(batches):
        for name, tensors in getattr(batch, field).items():
            for marker, numbers in tensors.items():
                moved = numbers + number * width(batch, name)
                found.setdefault(name, {}).setdefault(marker, []).append(moved)
    return {
        name: {marker: torch.cat(parts) for marker, parts in of.items()}
        for name, of in found.items()
    }


def stage_of(
    module: TrainModule,
    wrapped: torch.nn.Module,
    variant: str,
    distributed: DistributedConfig,
) -> StageContext:
    config = OptimizerConfig(
        learning_rate=0.0, max_grad_norm=None, schedule="constant", warmup_steps=0
    )
    return StageContext(
        module=module,
        wrapped=wrapped,
        optimizer=make_optimizer(module.parameters(), config),
        optimizer_config=config,
        loss=LossConfig(),
        objectives=VARIANTS[variant],
        steps=1,
        seed=0,
        distributed=distributed,
    )


def take_step(
    module: TrainModule,
    variant: str,
    batches: list[Batch],
    accelerator: Accelerator,
    distributed: DistributedConfig | None = None,
) -> tuple[StepResult, dict[str, torch.Tensor]]:
    """What a step tells, and all that it leaves: gradients, queues, statistics."""
    config = distributed or DistributedConfig()
    wrapped = share_module(module, config, accelerator)
    stage = stage_of(module, wrapped, variant, config)
    (result,) = training_steps(stage, iter([batches]), accelerator)
    gradients = {name: weight.grad for name, weight in module.named_parameters()}
    return result, {
        **{
            f"gradient of {name}": _whole(one) for name, one in gradients.items() if one is not None
        },
        **{name: value.clone() for name, value in module.named_buffers()},
    }


def _whole(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient.clone()


def obvious_step(
    corpus: Corpus, variant: str, batches: list[Batch]
) -> tuple[dict[str, float], dict[str, float], dict[str, torch.Tensor]]:
    """Losses, metrics and gradients of one process with one micro-batch, by plain autograd."""
    module, whole = make_module(corpus, variant), joined(batches)
    sums = module(whole)
    counts = whole.num_targets
    weights = {n: p for n, p in module.named_parameters() if p.requires_grad}
    loss = sum(
        objective.weight * sums[name].total / counts[name]
        for name, objective in VARIANTS[variant].items()
    )
    gradients = torch.autograd.grad(loss, list(weights.values()))
    metrics = {
        f"{name}/{metric}": float(value) / counts[name]
        for name, one in sums.items()
        for metric, value in one.metrics.items()
    }
    for name in VARIANTS[variant]:
        module.objective(name).after_step(taken=True)
    left = dict(module.named_buffers())
    left |= {f"gradient of {n}": g for n, g in zip(weights, gradients, strict=True)}
    losses = {name: one.total.item() / counts[name] for name, one in sums.items()}
    return losses, metrics, left


def grouped(batches: list[Batch], sizes: Sequence[int]) -> list[Batch]:
    """The same step in other micro-batches, of so many of its rows each."""
    found, start = [], 0
    for size in sizes:
        found.append(joined(batches[start : start + size]))
        start += size
    assert start == len(batches)
    return found


def heldout_scores(
    corpus: Corpus, variant: str, accelerator: Accelerator | None = None
) -> dict[str, float]:
    from tests.pretraining.monitoring.test_validation import make_validation

    streams = dict(STREAMS[name] for name in VARIANTS[variant])
    shape = BatchConfig(rows=16, micro_rows=2, row_length=LENGTH // 2)
    validation = make_validation(corpus, streams, VARIANTS[variant], shape, accelerator)
    scores: dict[str, float] = validation(make_module(corpus, variant))
    return scores


def one_of_several(
    rank: int,
    world: int,
    store: str,
    corpus: str,
    cases: Sequence[Case],
    folder: Path,
) -> None:
    """A process: takes the step of each case, and writes what it leaves; then held-out scores."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": store,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "ACCELERATE_USE_CPU": "True",
        "OMP_NUM_THREADS": "1",
    }
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    opened = Corpus.open(Path(corpus), verify="never")
    for strategy, variant, sizes in cases:
        distributed = DistributedConfig(
            strategy=strategy, shard_processes=2 if strategy == "hsdp" else None
        )
        batches = grouped(one_step(opened, variant), sizes)[rank::world]
        module = make_module(opened, variant)
        result, left = take_step(module, variant, batches, accelerator, distributed)
        name = f"{strategy}-{variant}-{len(sizes)}-{rank}.pt"
        torch.save((result.losses, result.metrics, left), folder / name)
    scores = heldout_scores(opened, "batch normalization", accelerator)
    torch.save(scores, folder / f"heldout-{rank}.pt")
    torch.distributed.destroy_process_group()
