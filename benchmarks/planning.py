"""`batch.micro_rows: auto` against numbers by hand, and `--hours` against the clock.

    python -m benchmarks.planning rows CORPUS --recipe xlm --set model.size=small
    python -m benchmarks.planning hours --recipe tiny --hours 0.1 --times 2

`rows` trains some steps with every number of rows at a time that divides a step (each in a process
of its own, so that memory that runs out ends only that), then with `auto`, and prints tokens per
second of each: the mean over the steps after the first five. `hours` runs `isoglot pretrain
--hours`, and prints how long the command took. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SKIPPED = 5
"""Steps at the beginning that are not counted."""


def command(
    given: argparse.Namespace, out: Path, *settings: str, hours: float | None = None
) -> list[str]:
    """The command line of one run."""
    corpus = ["--corpus", str(given.corpus)] if given.corpus else []
    limit = ["--hours", str(hours)] if hours is not None else []
    changes = [part for one in (*given.set, *settings) for part in ("--set", one)]
    isoglot = [sys.executable, "-m", "isoglot", "pretrain", given.recipe, "--out", str(out)]
    return [*isoglot, *corpus, *changes, *limit]


def speed(given: argparse.Namespace, micro_rows: int | str) -> dict[str, Any]:
    """Tokens per second with a number of rows at a time; none: it does not fit."""
    quick = (
        "stages.0.steps=" + str(given.steps),
        "stages.0.epochs=null",
        "logging.every_steps=1",
        "logging.validate_examples=1",
        "logging.trackers=[]",
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        began = time.monotonic()
        settings = (f"batch.micro_rows={micro_rows}", *quick)
        done = subprocess.run(
            command(given, out, *settings), capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "killed"
            return {"micro_rows": micro_rows, "tokens_per_second": None, "reason": reason}
        lines = (out / "metrics.jsonl").read_text().splitlines()
        steps = [one for one in map(json.loads, lines) if "seconds" in one][SKIPPED:]
        plan = out / "plan.json"
        chosen = json.loads(plan.read_text())["micro_rows"] if plan.is_file() else micro_rows
    tokens = sum(one["tokens"] for one in steps) / sum(one["seconds"] for one in steps)
    return {"micro_rows": chosen, "tokens_per_second": tokens, "command_seconds": seconds}


def rows(given: argparse.Namespace) -> None:
    """Print a table: every number by hand, then auto."""
    from isoglot.recipe import load_recipe

    whole = load_recipe(given.recipe, given.set).batch.rows
    sizes = given.sizes or [size for size in range(1, whole + 1) if whole % size == 0]
    found = [speed(given, size) for size in sizes]
    auto = speed(given, "auto")
    print("| rows at a time | tokens/s |\n| --: | --: |")
    for one in found:
        rate = one["tokens_per_second"]
        print(f"| {one['micro_rows']} | {f'{rate:,.0f}' if rate else one['reason']} |")
    print(f"| auto: {auto['micro_rows']} | {auto['tokens_per_second']:,.0f} |")
    best = max(one["tokens_per_second"] or 0 for one in found)
    by_hand = next(
        (o["tokens_per_second"] for o in found if o["micro_rows"] == auto["micro_rows"]), None
    )
    if by_hand:
        print(f"auto's number has {by_hand / best:.1%} of the best speed by hand")


def hours(given: argparse.Namespace) -> None:
    """Print how long the command took, and how far that is from the hours."""
    print("| hours | seconds asked | taken | difference | steps |\n| --: | --: | --: | --: | --: |")
    for _ in range(given.times):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            began = time.monotonic()
            subprocess.run(command(given, out, hours=given.hours), check=True, capture_output=True)
            taken, asked = time.monotonic() - began, 3600 * given.hours
            steps = json.loads((out / "plan.json").read_text())["steps"]
        print(
            f"| {given.hours:g} | {asked:.0f} | {taken:.1f} | {taken / asked - 1:+.1%} | {steps} |"
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rows", "hours"))
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--recipe", default="tiny")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--sizes", type=int, nargs="*", help="rows: numbers to try by hand")
    parser.add_argument("--steps", type=int, default=25, help="rows: steps of each run")
    parser.add_argument("--hours", type=float, default=0.1)
    parser.add_argument("--times", type=int, default=2)
    given = parser.parse_args()
    {"rows": rows, "hours": hours}[given.what](given)


if __name__ == "__main__":
    main()
