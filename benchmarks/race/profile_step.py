"""Where the time of a step goes: the kernels of a few steps, by name, and how long the GPU waited.

python -m benchmarks.race.profile_step CORPUS [--recipe benchmarks/race/recipes/mlm.yaml]
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.race.contestants import Enough
from benchmarks.race.run import HERE, make_model
from isoglot.corpus import Corpus
from isoglot.pretrain.run import pretrain
from isoglot.recipe import load_recipe

if TYPE_CHECKING:
    from isoglot.pretrain.loop import Step

BEFORE, STEPS = 30, 3
"""Steps without a profiler, of which the last are timed, and steps under it."""
LAST = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--recipe", default=f"{HERE}/recipes/mlm.yaml")
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--micro-rows", type=int, help="none: all rows at once")
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--top", type=int, default=45)
    given = parser.parse_args()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    schedule = torch.profiler.schedule(wait=BEFORE, warmup=2, active=STEPS)
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder) / "model", given)
        config = load_recipe(given.recipe, [f"model.start={folder}/model", *given.set])
        config = replace(
            config,
            batch=replace(
                config.batch,
                rows=given.rows,
                micro_rows=given.micro_rows or given.rows,
                row_length=given.row_length,
            ),
            loader=replace(config.loader, workers=given.workers),
            watch=replace(config.watch, validate_every=0, trackers=()),
        )
        taken = 0
        ends: list[tuple[float, int]] = []
        with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:

            def listen(step: Step) -> None:
                nonlocal taken
                taken += 1
                ends.append((time.perf_counter(), step.num_tokens))
                if taken == BEFORE + 2 + STEPS:
                    raise Enough
                profiler.step()

            with contextlib.suppress(Enough):
                pretrain(config, Corpus.open(given.corpus), Path(folder) / "run", on_step=listen)
        plain = ends[:BEFORE]
        seconds = [late[0] - soon[0] for soon, late in itertools.pairwise(plain)][-LAST:]
        tokens = statistics.fmean(tokens for _, tokens in plain[-LAST:])
        wall = statistics.median(seconds)
        print(f"step: {1000 * wall:.1f} ms, {tokens:,.0f} tokens, {tokens / wall:,.0f} tokens/s")
        tell(profiler, given.top)


def tell(profiler: Any, top: int) -> None:
    """How long the device worked, and its kernels (or a CPU's operations) by time."""
    device = torch.autograd.DeviceType.CUDA
    spent: dict[str, list[float]] = {}
    for event in profiler.events():
        if torch.cuda.is_available() and event.device_type != device:
            continue
        if getattr(event, "is_user_annotation", False) or event.name.startswith("ProfilerStep"):
            continue
        seconds = event.self_device_time_total or event.self_cpu_time_total
        spent.setdefault(event.name, []).append(seconds / 1000)
    busy = sum(map(sum, spent.values())) / STEPS
    print(f"kernels: {busy:.1f} ms a step")
    for name, times in sorted(spent.items(), key=lambda named: -sum(named[1]))[:top]:
        print(f"{sum(times) / STEPS:8.2f} ms {len(times) / STEPS:7.1f} x  {name[:110]}")


if __name__ == "__main__":
    main()
