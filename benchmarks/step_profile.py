"""Where does the time of a training step go: kernels, and the host that launches them?

    python -m benchmarks.step_profile CORPUS RECIPE [--set key=value ...] [--out FOLDER]

Trains a recipe for some steps and times them by the clock; then profiles two steps by torch's
profiler and ten by Python's. Printed: tokens a second, milliseconds of a step and of its kernels
(the rest of a step the GPU waits), the kernels that take longest and the functions of the training
thread that do. FOLDER gets longer lists, kernels.txt and host.txt. Nothing is kept of the run.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.race.kernel_profile import KernelProfile

if TYPE_CHECKING:
    from isoglot.pretraining.train_step import StepResult

_SHOWN = 12
"""Kernels and functions that are printed."""
_HOST_STEPS = 10


class _EnoughError(Exception):
    """Ends the training."""


class Profiled:
    """Listens to the steps of a training: times some, then profiles some, then ends it."""

    def __init__(self, steps: int, folder: Path) -> None:
        self.steps, self.folder = steps, folder
        self.ends: list[float] = []
        self.tokens: list[int] = []
        self._kernels = KernelProfile(folder / "kernels.txt")
        self._host = cProfile.Profile()
        self._left = _HOST_STEPS

    def __call__(self, result: StepResult) -> None:
        """After a step."""
        if len(self.ends) < self.steps:
            self.ends.append(time.perf_counter())
            self.tokens.append(result.num_tokens)
        if len(self.ends) < self.steps or self._kernels.step_ended():
            return
        self._host.disable()
        if not self._left:
            raise _EnoughError
        self._left -= 1
        self._host.enable()

    def summary(self) -> str:
        """Speed, and the share of the kernels."""
        skipped = self.steps // 2
        seconds = self.ends[-1] - self.ends[skipped - 1]
        speed, each = sum(self.tokens[skipped:]) / seconds, seconds / (self.steps - skipped)
        kernels = (self.folder / "kernels.txt").read_text(encoding="utf-8").splitlines()
        lines = [f"{speed:,.0f} tokens/s, {1000 * each:.1f} ms a step; {kernels[0]}"]
        return "\n".join(lines + kernels[1 : 1 + _SHOWN])

    def host(self, number: int) -> str:
        """The functions of the training thread by their own time, for `_HOST_STEPS` steps."""
        written = io.StringIO()
        pstats.Stats(self._host, stream=written).sort_stats("tottime").print_stats(number)
        _, _, table = written.getvalue().partition("ncalls")
        return f"host, {_HOST_STEPS} steps, slowed by profiling:\n   ncalls{table.rstrip()}"


def profile(corpus: Path, recipe: str, settings: list[str], steps: int, folder: Path) -> None:
    """Train, time and profile."""
    from isoglot import load_recipe, pretrain

    quick = ["stages.0.steps=100000", "logging.every_steps=1", "logging.validate_every_steps=0"]
    loaded = load_recipe(recipe, [*quick, "logging.trackers=[]", *settings])
    found = Profiled(steps, folder)
    with tempfile.TemporaryDirectory() as run, suppress(_EnoughError):
        pretrain(loaded, corpus, Path(run) / "run", on_step=found)
    (folder / "host.txt").write_text(found.host(100), encoding="utf-8")
    print(f"{recipe} {' '.join(settings)}\n{found.summary()}\n{found.host(_SHOWN)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile the steps of a recipe.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("recipe")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    parser.add_argument("--steps", type=int, default=60, help="half of them are timed")
    parser.add_argument("--out", type=Path, help="folder of the longer lists")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        profile(given.corpus, given.recipe, given.settings, given.steps, folder)


if __name__ == "__main__":
    main()
