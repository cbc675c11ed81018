"""Where does the time of a training step go: kernels, and the time in which the GPU waits?

    python -m benchmarks.step_profile CORPUS RECIPE [--set key=value ...] [--out FILE]

Trains a recipe for some steps, times them by the clock, then profiles two steps. Printed: tokens a
second, milliseconds of a step and of its kernels (the rest of the step the GPU waits for the host),
and the kernels that take longest. Nothing is kept of the run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.race.kernel_profile import KernelProfile

if TYPE_CHECKING:
    from isoglot.pretraining.train_step import StepResult

_SHOWN = 12
"""Kernels that are printed; the file has more."""


class _EnoughError(Exception):
    """Ends the training."""


def profile(corpus: Path, recipe: str, settings: list[str], steps: int, file: Path) -> None:
    """Train, time and profile."""
    from isoglot import load_recipe, pretrain

    skipped = steps // 2
    ends: list[float] = []
    tokens: list[int] = []
    kernels = KernelProfile(file)

    def on_step(result: StepResult) -> None:
        if len(ends) < steps:
            ends.append(time.perf_counter())
            tokens.append(result.num_tokens)
        if len(ends) == steps and not kernels.step_ended():
            raise _EnoughError

    quick = ["stages.0.steps=100000", "logging.every_steps=1", "logging.validate_every_steps=0"]
    loaded = load_recipe(recipe, [*quick, "logging.trackers=[]", *settings])
    with tempfile.TemporaryDirectory() as folder:
        try:
            pretrain(loaded, corpus, Path(folder) / "run", on_step=on_step)
        except _EnoughError:
            pass
    seconds = ends[-1] - ends[skipped - 1]
    lines = file.read_text(encoding="utf-8").splitlines()
    speed = sum(tokens[skipped:]) / seconds
    each = 1000 * seconds / (steps - skipped)
    print(f"{recipe} {' '.join(settings)}\n  {speed:,.0f} tokens/s, {each:.1f} ms a step; {lines[0]}")
    print("\n".join(lines[1 : 1 + _SHOWN]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile the steps of a recipe.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("recipe")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    parser.add_argument("--steps", type=int, default=60, help="half of them are timed")
    parser.add_argument("--out", type=Path, help="file of the kernels")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.out or Path(folder) / "kernels.txt"
        profile(given.corpus, given.recipe, given.settings, given.steps, file)


if __name__ == "__main__":
    main()
