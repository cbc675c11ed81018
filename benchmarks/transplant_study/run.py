"""The transplant study: an English model given ten languages, against the same from scratch.

    python -m benchmarks.transplant_study.run WORK [--archive FILE] [--arms ...] [--seeds 0 1 2]

Reads WORK as `prepare.py` left it, or unpacks its archive there; needs no network. First the
English model, then every arm with every seed, each in a process of its own with a log in WORK/logs;
last of all the tables and the figure (`table.py`). What is there already is not run again; a cell
that fails or takes too long is reported and stops no other.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.alignment.run import MOST_WORKERS, Cell, run_cell
from benchmarks.transplant_study.cell import META
from benchmarks.transplant_study.table import write_tables
from typing_extensions import override

ARMS = ("scratch", "transplant", "dict")
POINTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCell(Cell):
    """An arm with a seed; `recipe` is the arm's name."""

    @override
    def command(self) -> list[str]:
        workers = min(max(self.cores - 1, 0), MOST_WORKERS)
        settings = [f"loader.num_workers={workers}", *self.settings]
        told = [part for setting in settings for part in ("--set", setting)]
        module = [sys.executable, "-m", "benchmarks.transplant_study.cell"]
        place = [str(self.work), self.recipe, str(self.seed)]
        return [*module, *place, "--threads", str(self.cores), *told]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the transplant study.")
    parser.add_argument("work", type=Path, help="the folder that prepare.py made, or is to be")
    parser.add_argument("--archive", type=Path, help="what prepare.py packed, unpacked into WORK")
    parser.add_argument(
        "--arms", nargs="+", default=list(ARMS), help="names in recipes/, but for meta"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=3000, help="of cross-lingual pre-training")
    parser.add_argument("--meta-steps", type=int, default=4000, help="of the English model")
    parser.add_argument("--parallel", type=int, default=1, help="cells at a time")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a cell, at most")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    return parser.parse_args()


def steps_of(arm: str, steps: int, meta_steps: int) -> list[str]:
    """Settings of a cell's length, with its five points."""
    if arm == META:
        return [f"stages.0.steps={meta_steps}"]
    number = steps + meta_steps if arm == "scratch-long" else steps
    each = max(1, number // POINTS)
    return [
        f"stages.0.steps={number}",
        f"logging.validate_every_steps={each}",
        f"export.every_steps={each}",
    ]


def main() -> None:
    given = arguments()
    if given.archive is not None and not (given.work / "corpus/manifest.json").is_file():
        given.work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(given.archive) as packed:
            packed.extractall(given.work, filter="data")

    def cell(arm: str, seed: int, share: int = 1) -> ArmCell:
        return ArmCell(
            work=given.work,
            recipe=arm,
            seed=seed,
            start=None,
            settings=[*steps_of(arm, given.steps, given.meta_steps), *given.settings],
            cores=max(1, (os.cpu_count() or 1) // share),
            limit=given.limit,
        )

    if not run_cell(cell(META, 0)):
        sys.exit("without the English model there is nothing to transplant")
    # seed by seed, so that an interrupted study has whole seeds
    cells = [cell(arm, seed, given.parallel) for seed in given.seeds for arm in given.arms]
    with ThreadPoolExecutor(given.parallel) as pool:
        went = list(pool.map(run_cell, cells))
    if any(went):
        print(write_tables(given.work))
    sys.exit(0 if all(went) else f"{went.count(False)} of {len(went)} cells failed")


if __name__ == "__main__":
    main()
