"""What each lever of pre-training is worth, at equal GPU seconds.

    python -m benchmarks.levers WORK [--archive FILE] [--out FOLDER] [--known FILE ...]
        [--gpu-seconds 24] [--seconds 540] [--parallel 3] [--arms ...] [--seeds 0 1 2] [--small]

Reads WORK/corpus, made by `benchmarks.levers.data` or unpacked from its archive. Times a step of
every arm alone on the GPU, then trains ARM × SEED side by side, each for the steps that fit
`--gpu-seconds`. After every cell FOLDER/levers.json and levers.md are written again; cells of
`--known` files, from earlier calls, are not run again. No cell is begun that would end after
`--seconds`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.cells import CellQueue, Deadline, ResultsFile, loader_workers, unpack
from benchmarks.levers.arms import arm_order, timed_as
from benchmarks.levers.table import curve, table
from benchmarks.levers.train import Setting, time_steps
from benchmarks.workers import Result, Workers, quiet


def time_arms(setting: Setting, arms: list[str], results: ResultsFile) -> None:
    """Time a step of each arm that has not been timed, alone on the GPU."""
    for cell in results.cells.values():
        if cell["gpu_seconds"] == setting.gpu_seconds:
            setting.timing.setdefault(timed_as(cell["arm"]), cell["step_seconds_alone"])
    for arm in dict.fromkeys(map(timed_as, arms)):
        if arm not in setting.timing:
            with quiet(setting.work / "logs" / f"time-{arm}.txt"):
                setting.timing[arm] = time_steps(setting, arm)
        told = ", ".join(f"{name} {1000 * s:.1f} ms" for name, s in setting.timing[arm].items())
        print(f"{arm:<28} a step alone: {told}; {setting.steps(arm):,} steps", flush=True)


def summary(result: Result) -> str:
    """A line about a finished cell."""
    speed = result["tokens"] / result["train_seconds"]
    loss = curve(result)[-1][1]
    return f"loss {loss:.4f}, {result['tokens'] / 1e6:.1f}M tokens, {speed:,.0f}/s side by side"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare levers at equal GPU seconds.")
    parser.add_argument("work", type=Path, help="the folder that levers.data made, or is to be")
    parser.add_argument("--archive", type=Path, help="what levers.data packed")
    parser.add_argument("--out", type=Path, default=Path("levers-results"))
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="earlier levers.json")
    parser.add_argument("--gpu-seconds", type=float, default=24.0, help="of every training")
    parser.add_argument("--seconds", type=float, default=1e9, help="for the whole call")
    parser.add_argument("--parallel", type=int, default=3, help="trainings at a time")
    parser.add_argument("--arms", nargs="+", default=[], help="baseline, all, levers, a+b")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--small", action="store_true", help="a tiny model and four steps")
    given = parser.parse_args()
    deadline = Deadline(seconds=given.seconds, expected=2.0 * given.gpu_seconds)
    with Workers(given.parallel) as workers:
        unpack(given.archive, given.work)
        results = ResultsFile(given.out / "levers.json", given.known, render=table)
        results.write()
        setting = Setting(
            work=given.work.resolve(),
            gpu_seconds=given.gpu_seconds,
            timing={},
            loader_workers=0 if given.small else loader_workers(given.parallel),
            small=given.small,
        )
        arms = arm_order(given.arms)
        # seed by seed, so that an interrupted study has whole seeds
        names = [f"{arm}-{seed}" for seed in given.seeds for arm in arms]
        wanted = [name for name in names if name not in results.cells]
        alone = replace(setting, loader_workers=0 if given.small else loader_workers(1))
        time_arms(alone, [name.rpartition("-")[0] for name in wanted], results)
        queue = CellQueue(
            work=setting,
            results=results,
            deadline=deadline,
            workers=workers,
            summary=summary,
            logs=setting.work / "logs",
        )
        failed = queue.run(names)
    print(table(results.cells))
    sys.exit(f"{len(failed)} cells failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
