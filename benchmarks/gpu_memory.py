"""The memory of large models on a GPU: what `--estimate` says, and what training takes.

    python -m benchmarks.gpu_memory                        all configurations, a table in Markdown
    python -m benchmarks.gpu_memory --only xl xxl          those whose names begin so
    python -m benchmarks.gpu_memory --estimate             the estimates alone, without a GPU
    python -m benchmarks.gpu_memory --only base large --regions no yes --fast
                                                           whole models and regions compiled, with
                                                           kernels that need not be deterministic

Each configuration trains MLM on random full rows of 512 tokens, 15 % of them targets, with the
vocabulary of XLM-R, in a process of its own, so that one that runs out of memory ends itself only.
The share of the peak is that of benchmarks/race: the model's arithmetic, recomputed layers not
counted, over what large matrix products reach on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.models.config import ModelConfig
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.config import PretrainConfig, StageConfig
from isoglot.pretraining.estimates.activations import fake_tensors, kept_bytes, traced_settings
from isoglot.pretraining.estimates.memory_estimate import passes_of, stage_memory
from isoglot.pretraining.estimates.shape_model import (
    build_encoder,
    build_module,
    model_config,
    with_layers,
)
from isoglot.pretraining.memory_config import MemoryConfig
from isoglot.types import Batch, Cursor, Rows, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.pretraining.estimates.memory_estimate import MemoryEstimate

VOCABULARY, ROW_LENGTH, TARGETS = 250_002, 512, 77
WARM_UP, MEASURED, MICRO_BATCHES = 3, 5, 2
BLOCKS: dict[str, Any] = {"activation_checkpointing": "blocks"}
LOW_BIT: dict[str, Any] = {"weights": "bf16", "moments": "int8"}
REGIONS = {"auto": None, "yes": True, "no": False}
CONFIGURATIONS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "base": ("base", 64, {}),
    "base, recomputed": ("base", 64, BLOCKS),
    "base, int8 moments": ("base", 64, {"moments": "int8"}),
    "base, offloaded": ("base", 64, {"offload_optimizer": True}),
    "base, 96 rows": ("base", 96, {}),
    "large": ("large", 32, {}),
    "large, 64 rows": ("large", 64, {}),
    "large, recomputed": ("large", 64, BLOCKS),
    "large, bf16, int8": ("large", 32, LOW_BIT),
    "xl": ("xl", 8, {}),
    "xl, recomputed": ("xl", 32, BLOCKS),
    "xl, int8 moments": ("xl", 16, {"moments": "int8"}),
    "xl, bf16, int8": ("xl", 16, LOW_BIT),
    "xl, bf16, int8, recomputed": ("xl", 32, {**LOW_BIT, **BLOCKS}),
    "xxl, bf16, int8, recomputed": ("xxl", 16, {**LOW_BIT, **BLOCKS}),
    "xxl, bf16, int8, recomputed, 32 rows": ("xxl", 32, {**LOW_BIT, **BLOCKS}),
    "xxl, bf16, bf16 moments, recomputed": (
        "xxl", 16, {"weights": "bf16", "moments": "bf16", **BLOCKS},
    ),
    "xxl, int8 moments, recomputed": ("xxl", 8, {"moments": "int8", **BLOCKS}),
}  # fmt: skip


def recipe(name: str) -> PretrainConfig:
    size, micro_rows, memory = CONFIGURATIONS[name]
    rows = MICRO_BATCHES * micro_rows
    stage = StageConfig(steps=WARM_UP + MEASURED, streams={"text": TextStream(objectives=("mlm",))})
    model = ModelConfig(size=size, dropout=0.1, language_embeddings="none")  # type: ignore[arg-type]
    return PretrainConfig(
        model=model,
        stages=(stage,),
        batch=BatchConfig(rows=rows, micro_rows=micro_rows, row_length=ROW_LENGTH),
        memory=MemoryConfig(**memory),
    )


def nothing() -> Any:
    """What a model needs to know of a corpus."""
    vocabulary = Vocabulary(
        size=VOCABULARY,
        cls=0,
        sep=2,
        pad=1,
        mask=VOCABULARY - 1,
        special=(0, 1, 2, 3, VOCABULARY - 1),
        word_starts=np.ones(VOCABULARY, np.bool_),
    )
    return SimpleNamespace(vocabulary=vocabulary, languages=())


def estimate(name: str) -> MemoryEstimate:
    config, corpus = recipe(name), nothing()
    passes = passes_of(config, "cuda")
    settings = traced_settings(config.model, passes)
    shape = model_config(config.model, corpus, transplanted=False)
    with fake_tensors():
        module = build_module(shape, settings, {"mlm": MLM()}, corpus)
    kept = kept_bytes(
        lambda layers: build_encoder(with_layers(shape, layers), settings, corpus),
        config.batch.micro_batch_rows,
        ROW_LENGTH,
        passes,
    )
    targets = TARGETS * config.batch.micro_batch_rows
    return stage_memory(config, module, kept, passes, num_targets=targets)


def random_batches(config: PretrainConfig) -> Iterator[list[Batch]]:
    """Steps of full rows, one sequence each."""
    generator = torch.Generator().manual_seed(0)
    rows, size = config.batch.micro_batch_rows, (config.batch.micro_batch_rows, ROW_LENGTH)
    places = torch.arange(ROW_LENGTH).expand(size).contiguous()
    while True:
        step = []
        for _ in range(MICRO_BATCHES):
            ids = torch.randint(4, VOCABULARY - 1, size, generator=generator)
            positions = torch.rand(size, generator=generator).argsort(dim=1)[:, :TARGETS]
            positions = (positions + ROW_LENGTH * torch.arange(rows)[:, None]).flatten()
            zeros = torch.zeros(size, dtype=torch.int64)
            step.append(
                Batch(
                    rows=Rows(
                        ids=ids, positions=places, languages=zeros, sentences=zeros, roles=zeros,
                        rules=zeros, sequences=zeros,
                    ),
                    target_positions=positions,
                    targets=ids.flatten()[positions],
                    target_weights=torch.ones(len(positions)),
                    target_slices={"mlm": (0, len(positions))},
                    markers={},
                    aux_rows={},
                    aux_markers={},
                    labels={},
                    num_targets={"mlm": len(positions)},
                    num_tokens=ids.numel(),
                    cursor=Cursor(),
                )
            )  # fmt: skip
        yield step


def train(name: str, *, regions: bool | None, fast: bool) -> dict[str, float]:
    """Peak memory, tokens/s and the share of the peak of a configuration.

    Args:
        name: of the configuration.
        regions: compile regions, or the whole model; none: as a run would.
        fast: `deterministic: false`.
    """
    from accelerate import Accelerator

    from benchmarks.race import machine
    from benchmarks.race.flops import count_batches
    from isoglot.models.encoder import Encoder
    from isoglot.pretraining.config import LossConfig
    from isoglot.pretraining.memory_saving import save_memory
    from isoglot.pretraining.optimizers.optimizer import make_optimizer
    from isoglot.pretraining.runtime import StepSchedule, compiles_regions, enable_determinism
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.pretraining.train_step import StageContext, training_steps

    config, corpus, peak = recipe(name), nothing(), machine.matmul_peak()
    accelerator = Accelerator(mixed_precision="bf16")
    if not fast:
        enable_determinism()
    torch.manual_seed(0)
    with torch.device(accelerator.device):
        vocabulary = corpus.vocabulary
        encoder = Encoder.build(config.model, vocabulary)
        module = TrainModule(encoder, {"mlm": MLM()}, corpus)
    save_memory(module, config.memory, mixed_precision="bf16")
    module.to(accelerator.device).train()
    layers = int(encoder.model.config.num_hidden_layers)
    config = replace(config, compile_regions=regions)
    module.compile(regions=compiles_regions(config, layers, 1))
    steps = WARM_UP + MEASURED
    stage = StageContext(
        module=module,
        wrapped=module,
        optimizer=make_optimizer(module.parameters(), config.optimizer, config.memory),
        optimizer_config=config.optimizer,
        loss=LossConfig(),
        objectives={"mlm": MLM()},
        steps=steps,
        seed=0,
        schedule=StepSchedule(last_step=steps + 1, validate_every=0, save_every=0, export_every=0),
    )
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    peaks = separate_peaks(stage.optimizer)
    seconds = []
    losses = []
    began = time.perf_counter()
    for result in training_steps(stage, random_batches(config), accelerator):
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
        losses.append(next(iter(result.losses.values())))
        began = time.perf_counter()
    step_seconds = float(np.median(seconds[WARM_UP:]))
    counts = count_batches([next(random_batches(config))])
    return {
        "measured": max(peaks.values()),
        **peaks,
        "reserved": torch.cuda.max_memory_reserved(),
        "tokens_per_second": counts.tokens / step_seconds,
        "share": counts.flops(encoder.model.config) / step_seconds / peak,
        "first_step": seconds[0],
        "loss": losses[-1],
    }


def separate_peaks(optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """The highest memory of the passes and of the updates, filled while training goes on."""
    peaks = {"passes": 0, "update": 0}

    def note(name: str) -> None:
        peaks[name] = max(peaks[name], torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()

    optimizer.register_step_pre_hook(lambda *_: note("passes"))
    optimizer.register_step_post_hook(lambda *_: note("update"))
    return peaks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""], help="names that begin so")
    parser.add_argument("--names", nargs="*", default=[], help="these names alone")
    parser.add_argument("--estimate", action="store_true", help="no training")
    parser.add_argument("--regions", nargs="*", choices=REGIONS, default=["auto"])
    parser.add_argument("--fast", action="store_true", help="kernels need not be deterministic")
    parser.add_argument("--one", choices=CONFIGURATIONS, help="train one, and print JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(train(given.one, regions=REGIONS[given.regions[0]], fast=given.fast)))
        return
    print(
        "| | rows at a time | weights | estimate GiB | peak GiB: passes, update, reserved "
        "| difference | tokens/s | share of the peak | first step s | loss |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for name in CONFIGURATIONS:
        if name in given.names or (not given.names and begins(name, given.only)):
            for regions in given.regions:
                found = {} if given.estimate else trained(name, regions, fast=given.fast)
                shown = f"{name}{'' if regions == 'auto' else f', regions: {regions}'}"
                print(line(shown, estimate(name), found), flush=True)


def begins(name: str, only: list[str]) -> bool:
    """Is the name one of these, or does it begin with one of them and a comma?"""
    return any(name == one or name.startswith(f"{one},") or not one for one in only)


def trained(name: str, regions: str, *, fast: bool) -> dict[str, Any]:
    """The numbers of a configuration, trained in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu_memory", "--one", name, "--regions", regions]
    command += ["--fast"] if fast else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1][:160] if lines else f"exit code {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def line(name: str, needed: MemoryEstimate, found: dict[str, Any]) -> str:
    start = f"| {name} | {needed.micro_rows} | {needed.num_parameters / 1e9:.2f} B "
    start += f"| {needed.peak / 2**30:.1f} "
    if "measured" not in found:
        return f"{start}| {found.get('error', '')} | | | | |"
    difference = needed.peak / found["measured"] - 1
    peaks = ", ".join(f"{found[key] / 2**30:.1f}" for key in ("passes", "update", "reserved"))
    return (
        f"{start}| {peaks} | {100 * difference:+.1f} % | {found['tokens_per_second']:,.0f} "
        f"| {100 * found['share']:.1f} % | {found['first_step']:.0f} | {found['loss']:.4f} |"
    )


if __name__ == "__main__":
    main()
