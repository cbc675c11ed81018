"""A short run as its own process, to be killed: `python -m tests.pretraining.driver CORPUS RUN`."""

from __future__ import annotations

import argparse
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from isoglot import atomic
from isoglot.batching.loader import LoaderConfig
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import MentionStream, ParallelStream, TextStream, TripleStream
from isoglot.corpus import Corpus
from isoglot.models.config import ExportConfig, GenerationConfig, ModelConfig
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.contrast.momentum import MomentumConfig, QueueConfig
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.objectives.moco import MoCo
from isoglot.pretraining import build, train_step
from isoglot.pretraining.checkpoints.checkpoint import CheckpointConfig
from isoglot.pretraining.config import LoggingConfig, PretrainConfig, StageConfig
from isoglot.pretraining.estimates.measuring import TimeBudget, time_budget
from isoglot.pretraining.monitoring.early_stopping import EarlyStoppingConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_module import TrainModule
from isoglot.types import Batch
from tests.pretraining import translating

STEPS = (10, 8)
"""Two stages, so that resuming happens in either."""
CONTRAST_STEPS = (3, 9)
SLOTS_STEPS = (7, 7)
KNOWLEDGE_STEPS = (2, 9)


def config(workers: int = 0, **changes: object) -> PretrainConfig:
    text = TextStream(objectives=("mlm",), share=0.9)
    pairs = ParallelStream(objectives=("tlm",), share=0.1, order="shuffled", overlong="drop")
    settings: dict[str, object] = {
        "model": ModelConfig(
            size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96, dropout=0.1
        ),
        "stages": (
            StageConfig(steps=STEPS[0], streams={"text": text}),
            StageConfig(
                steps=STEPS[1],
                streams={"text": text, "parallel": pairs},
                optimizer=OptimizerConfig(
                    name="lamb", learning_rate=1e-2, betas=(0.8, 0.9), weight_decay=0.1
                ),
            ),
        ),
        "batch": BatchConfig(rows=4, micro_rows=1, row_length=96),
        "loader": LoaderConfig(num_workers=workers),
        "optimizer": OptimizerConfig(learning_rate=3e-3),
        "checkpoint": CheckpointConfig(every_steps=3, keep=2),
        "logging": LoggingConfig(validate_every_steps=0, validate_examples=5, trackers=()),
        **changes,
    }
    return PretrainConfig(**settings)  # type: ignore[arg-type]


def contrast(workers: int = 0) -> PretrainConfig:
    """Momentum contrast in the second stage, from a filled queue; few micro-batches have pairs."""
    plain = config(workers)
    first = replace(plain.stages[0], steps=CONTRAST_STEPS[0])
    text, queue = plain.stages[0].streams["text"], QueueConfig(size=20, start="filled")
    pairs = ParallelStream(objectives=("moco", "tlm"), share=0.1, order="shuffled")
    second = StageConfig(steps=CONTRAST_STEPS[1], streams={"text": text, "parallel": pairs})
    return replace(
        plain,
        stages=(first, second),
        objectives={"moco": MoCo(queue=queue, momentum=MomentumConfig(value=0.9))},
        batch=BatchConfig(rows=8, micro_rows=2, row_length=96),
    )


def slots(workers: int = 0) -> PretrainConfig:
    """The stages of ERNIE-M: CAMLM in the first, BTMLM with drawn pseudo-tokens in the second."""
    plain = config(workers)
    pairs = plain.stages[1].streams["parallel"]
    text = plain.stages[0].streams["text"]
    stages = tuple(
        StageConfig(
            steps=number,
            streams={
                "text": replace(text, objectives=of_text, share=0.5),
                "parallel": replace(pairs, objectives=of_pairs, share=0.5),
            },
            keep_optimizer=True,
        )
        for number, of_text, of_pairs in (
            (SLOTS_STEPS[0], ("mlm",), ("tlm", "camlm")),
            (SLOTS_STEPS[1], ("mlm", "btmlm"), ("tlm",)),
        )
    )
    return replace(
        plain,
        stages=stages,
        objectives={"btmlm": BTMLM(decoding="sample", temperature=1.5)},
        batch=BatchConfig(rows=8, micro_rows=4, row_length=96),
    )


def seq2seq(workers: int = 0) -> PretrainConfig:
    """Three stages with a decoder, which writes by drawing in the last."""
    return translating.config(loader=LoaderConfig(num_workers=workers))


def knowledge(workers: int = 0) -> PretrainConfig:
    """XLM-K in the second stage: two queues of keys that are trained; few mentions a step."""
    plain = config(workers)
    queue = QueueConfig(size=12, start="empty")
    streams = {
        "text": plain.stages[0].streams["text"],
        "mentions": MentionStream(objectives=("entity",), share=0.15, max_tokens=40),
        "triples": TripleStream(objectives=("entailment",), share=0.15),
    }
    return replace(
        plain,
        stages=(
            replace(plain.stages[0], steps=KNOWLEDGE_STEPS[0]),
            StageConfig(steps=KNOWLEDGE_STEPS[1], streams=streams),
        ),
        objectives={
            "entity": EntityPrediction(queue=queue),
            "entailment": ObjectEntailment(queue=queue),
        },
        batch=BatchConfig(rows=8, micro_rows=2, row_length=96),
    )


def stopping(workers: int = 0) -> PretrainConfig:
    """Ends long before its last step, and exports the best of the steps before."""
    long = contrast(workers)
    second = replace(long.stages[1], steps=60)
    return replace(
        long,
        stages=(long.stages[0], second),
        checkpoint=CheckpointConfig(every_steps=3, keep=1),
        logging=LoggingConfig(validate_every_steps=2, validate_examples=5, trackers=()),
        early_stopping=EarlyStoppingConfig(patience=3),
        export=ExportConfig(checkpoint="best", sentence_transformers="pooled"),
    )


def exporting(workers: int = 0) -> PretrainConfig:
    """The plain stages, of which the second has LAMB, with every kind of exported folder."""
    plain = config(workers)
    return replace(
        plain,
        model=replace(plain.model, language_embeddings="all"),
        export=ExportConfig(every_steps=9, fold_languages=("aa",), sentence_transformers="pooled"),
    )


MIXES = {
    "exporting": exporting,
    "stopping": stopping,
    "plain": config,
    "contrast": contrast,
    "slots": slots,
    "seq2seq": seq2seq,
    "knowledge": knowledge,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--mix", choices=MIXES, default="plain")
    parser.add_argument("--kill-in-save", type=int, default=0)
    parser.add_argument("--step-seconds", type=float, default=0.0)
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--hours", type=float)
    parser.add_argument("--seconds-left", type=float)
    parser.add_argument("--strategy", choices=("ddp", "fsdp", "hsdp"), default="ddp")
    parser.add_argument("--shard-processes", type=int)
    parser.add_argument("--accumulate", choices=("parts", "whole"), default="parts")
    parser.add_argument("--still", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.kill_in_save:
        die_at_sync(arguments.kill_in_save)
    if arguments.step_seconds:
        wait_in_steps(arguments.step_seconds)
    if arguments.seconds_left:
        TimeBudget.left = lambda *_: arguments.seconds_left  # type: ignore[method-assign]
    recipe = MIXES[arguments.mix](arguments.workers)
    recipe = replace(
        recipe,
        distributed=DistributedConfig(
            strategy=arguments.strategy,
            shard_processes=arguments.shard_processes,
            accumulate=arguments.accumulate,
        ),
    )
    if arguments.still:  # masks of dropout and generated tokens are drawn by each process
        recipe = still(recipe)
        compute_in_float64()
    if arguments.auto:
        recipe = replace(recipe, batch=replace(recipe.batch, micro_rows="auto"))
    pretrain(
        recipe,
        Corpus.open(arguments.corpus),
        arguments.run,
        resume=arguments.resume,
        budget=time_budget(arguments.hours),
    )


def still(recipe: PretrainConfig) -> PretrainConfig:
    """A recipe without what each process draws by itself: dropout masks, generated tokens."""
    objectives: dict[str, Any] = dict(recipe.objectives)
    if "btmlm" in objectives:
        objectives["btmlm"] = replace(objectives["btmlm"], decoding="argmax")
    if "backtranslate" in objectives:
        objectives["backtranslate"] = replace(
            objectives["backtranslate"], generation=GenerationConfig(method="greedy")
        )
    return replace(recipe, model=replace(recipe.model, dropout=0.0), objectives=objectives)


def compute_in_float64() -> None:
    """Weights in float64: what processes add up in another order is the same to 1e-12."""
    build_train_module = build.build_train_module

    def doubled(*arguments: Any, **settings: Any) -> TrainModule:
        return build_train_module(*arguments, **settings).double()

    build.build_train_module = doubled


def wait_in_steps(seconds: float) -> None:
    """Steps that take long enough for a signal to arrive in one of them."""
    to_device = train_step._to_device

    def slow(device: torch.device, micro_batches: list[Batch]) -> list[Batch]:
        time.sleep(seconds)
        return to_device(device, micro_batches)

    train_step._to_device = slow


def die_at_sync(number: int) -> None:
    """SIGKILL at the n-th time that something is synced to disk."""
    sync, calls = atomic.sync, [0]

    def counted(path: Path) -> None:
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(path)

    atomic.sync = counted


if __name__ == "__main__":
    main()
