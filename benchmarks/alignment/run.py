"""The study: a shared checkpoint, then every recipe with every seed from it, scored.

    python -m benchmarks.alignment.run WORK --recipes mlm tlm --seeds 0 1 2 [--parallel 2]

Reads WORK as `text.py` left it. Each cell is a process of its own (`cell.py`) with a log in
WORK/logs; its scores are in WORK/results/RECIPE-SEED.json as soon as it has finished. A cell that
is there already is skipped, one that fails or takes too long is reported and stops no other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKPOINT = "checkpoint"
MOST_WORKERS = 12
"""Loader processes of one cell: more bring nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A recipe with a seed, and what it may use of the machine."""

    work: Path
    recipe: str
    seed: int
    start: Path | None
    """The model to start from; none: random weights."""
    settings: list[str]
    cores: int
    limit: float | None
    """Seconds after which it is given up."""

    @property
    def name(self) -> str:
        return f"{Path(self.recipe).stem}-{self.seed}"

    @property
    def result(self) -> Path:
        return self.work / "results" / f"{self.name}.json"

    @property
    def log(self) -> Path:
        return self.work / "logs" / f"{self.name}.txt"

    def command(self) -> list[str]:
        workers = min(max(self.cores - 1, 0), MOST_WORKERS)
        settings = [f"loader.num_workers={workers}", *self.settings]
        place = [str(self.work), self.recipe, str(self.seed)]
        start = [] if self.start is None else ["--start", str(self.start)]
        told = [part for setting in settings for part in ("--set", setting)]
        module = [sys.executable, "-m", "benchmarks.alignment.cell"]
        return [*module, *place, "--threads", str(self.cores), *start, *told]


def run_cell(cell: Cell) -> bool:
    """Run one cell unless it is there already; prints how it went, gives whether it went well."""
    if cell.result.is_file():
        print(f"{cell.name:<20} is there already", flush=True)
        return True
    began = time.perf_counter()
    fault = _run(cell)
    seconds = time.perf_counter() - began
    if fault is None:
        print(f"{cell.name:<20} {_summary(cell.result)} {seconds:6.0f} s", flush=True)
        return True
    lines = cell.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
    said = "".join(f"\n    {line}" for line in [*lines, f"(all of it: {cell.log})"])
    print(f"{cell.name:<20} FAILED after {seconds:.0f} s: {fault}{said}", flush=True)
    return False


def _run(cell: Cell) -> str | None:
    """Run a cell's process to its end; gives what was wrong with it."""
    cell.log.parent.mkdir(exist_ok=True)
    paths = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    with cell.log.open("w", encoding="utf-8") as log:
        try:
            ended = subprocess.run(
                cell.command(),
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                timeout=cell.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "it took too long"
    return None if cell.result.is_file() else f"its process ended with {ended.returncode}"


def _summary(result: Path) -> str:
    found = json.loads(result.read_text(encoding="utf-8"))
    scores = "  ".join(f"{test} {value:5.1f}" for test, value in found["means"].items())
    speed = f"{found['tokens_per_second']:,.0f} tokens/s"
    times = f"trained {found['train_seconds']:.0f} s, scored {found['score_seconds']:.0f} s, all"
    return f"{scores}  {found['tokens'] / 1e6:.1f}M tokens, {speed}, {times}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the alignment study.")
    parser.add_argument("work", type=Path, help="the folder that text.py made")
    parser.add_argument("--recipes", nargs="+", default=["mlm", "tlm"], help="names or .yaml files")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--checkpoint", type=Path, help="a model folder to start from instead")
    parser.add_argument("--checkpoint-steps", type=int, help="steps of the shared checkpoint")
    parser.add_argument("--steps", type=int, help="steps of every continuation")
    parser.add_argument("--parallel", type=int, default=1, help="cells at a time")
    parser.add_argument("--limit", type=float, help="seconds after which a cell is given up")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    cores = os.cpu_count() or 1

    def cell(recipe: str, seed: int, start: Path | None, steps: int | None, share: int) -> Cell:
        chosen = [] if steps is None else [f"stages.0.steps={steps}"]
        return Cell(
            work=given.work,
            recipe=recipe,
            seed=seed,
            start=start,
            settings=[*chosen, *given.settings],
            cores=max(1, cores // share),
            limit=given.limit,
        )

    start = given.checkpoint
    if start is None:
        # it has the machine to itself
        if not run_cell(cell(CHECKPOINT, 0, None, given.checkpoint_steps, 1)):
            sys.exit("without a checkpoint there is nothing to continue from")
        start = given.work / "runs" / f"{CHECKPOINT}-0" / "model"
    # seed by seed, so that an interrupted study has whole seeds
    cells = [
        cell(recipe, seed, start, given.steps, given.parallel)
        for seed in given.seeds
        for recipe in given.recipes
    ]
    with ThreadPoolExecutor(given.parallel) as pool:
        went = list(pool.map(run_cell, cells))
    sys.exit(0 if all(went) else f"{went.count(False)} of {len(cells)} cells failed")


if __name__ == "__main__":
    main()
