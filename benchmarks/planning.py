"""`batch.micro_rows: auto` against numbers by hand, and `--hours` against the clock.

    python -m benchmarks.planning rows CORPUS --recipe xlm --set model.size=small
    python -m benchmarks.planning hours --recipe tiny --hours 0.1 --times 2
    python -m benchmarks.planning hours --job adapt --hours 0.1 --times 2

`rows` trains some steps with every number of rows at a time that divides a step (each in a process
of its own, so that memory that runs out ends only that), lets `auto` choose, and prints tokens per
second of each: the mean over the steps after the first ones, by the clock and by the CPU time of
the process, which other work on the machine changes less. `hours` runs `isoglot pretrain --hours`
on the testbed, or `isoglot adapt --hours` with a small encoder of its own, and prints the minutes
that were asked for and those that the command took; nothing else should run on the machine then.
Twice 0.1 hours take less than 13 minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

SKIPPED = 10
"""Steps at the beginning that are not counted."""
ISOGLOT = (sys.executable, "-m", "isoglot")
KINDS = ("tokens_per_second", "tokens_per_cpu_second")


def command(
    given: argparse.Namespace, out: Path, *settings: str, hours: float | None = None
) -> list[str]:
    """The command line of one run."""
    corpus = ["--corpus", str(given.corpus)] if given.corpus else []
    limit = ["--hours", str(hours)] if hours is not None else []
    changes = [part for one in (*given.set, *settings) for part in ("--set", one)]
    return [*ISOGLOT, "pretrain", given.recipe, "--out", str(out), *corpus, *changes, *limit]


def speed(given: argparse.Namespace, micro_rows: int) -> dict[str, Any]:
    """Tokens per second with a number of rows at a time; none: it does not fit."""
    quick = (
        f"batch.micro_rows={micro_rows}",
        "stages.0.steps=100000",
        "stages.0.epochs=null",
        "logging.every_steps=1",
        "logging.validate_every_steps=0",
        "logging.trackers=[]",
    )
    done = _in_a_process("timed_run", given, [*given.set, *quick], given.steps)
    if "reason" in done:
        return {"tokens_per_second": None, **done}
    clock, process, tokens = (
        [after - before for before, after in pairwise(column)]
        for column in zip(*done["steps"][SKIPPED - 1 :], strict=True)
    )
    return {
        "tokens_per_second": sum(tokens) / sum(clock),
        "tokens_per_cpu_second": sum(tokens) / sum(process),
        "slowest": max(clock) / median(clock),
    }


def _in_a_process(function: str, given: argparse.Namespace, *work: Any) -> dict[str, Any]:
    """Call a function of this file in a process of its own; what it prints last, or a reason."""
    corpus = str(given.corpus) if given.corpus else None
    told = json.dumps([given.recipe, corpus, *work])
    program = f"import benchmarks.planning as own; own.{function}(*own.json.loads({told!r}))"
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return {"reason": said[-1] if said else "killed"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


class _EnoughError(Exception):
    """Ends a training that is only timed."""


def timed_run(recipe: str, corpus: str | None, settings: list[str], steps: int) -> None:
    """Train some steps; print clock, CPU time of the process and tokens after every step."""
    from isoglot import pretrain

    taken: list[tuple[float, float, int]] = []

    def on_step(result: Any) -> None:
        before = taken[-1][2] if taken else 0
        taken.append((time.perf_counter(), time.process_time(), before + result.num_tokens))
        if len(taken) == steps:
            raise _EnoughError

    with tempfile.TemporaryDirectory() as folder, suppress(_EnoughError):
        pretrain(recipe, corpus, Path(folder) / "run", settings=settings, on_step=on_step)
    print(json.dumps({"steps": taken}))


def find_rows(recipe: str, corpus: str | None, settings: list[str]) -> None:
    """Print the number that `batch.micro_rows: auto` takes, and the seconds to find it."""
    from isoglot.corpus import Corpus
    from isoglot.pretraining.estimates.estimate import find_micro_rows
    from isoglot.recipe import load_recipe

    loaded = load_recipe(recipe, [*settings, "batch.micro_rows=auto"])
    began = time.monotonic()
    found = find_micro_rows(loaded, Corpus.open(Path(corpus or str(loaded.corpus))))
    print(json.dumps({"number": found.number, "seconds": time.monotonic() - began}))


def rows(given: argparse.Namespace) -> None:
    """Print a table: every number by hand, and which of them auto takes."""
    from isoglot.recipe import load_recipe

    whole = load_recipe(given.recipe, given.set).batch.rows
    sizes = given.sizes or [size for size in range(1, whole + 1) if whole % size == 0]
    found: dict[int, dict[str, Any]] = {}

    def tried(size: int) -> None:
        found[size] = one = speed(given, size)
        shown = one.get("reason")
        if shown is None:
            shown = " | ".join(f"{one[kind]:,.0f}" for kind in KINDS) + f" | {one['slowest']:.1f}"
        print(f"| {size} | {shown} |", flush=True)

    headings = ("rows at a time", "tokens/s", "tokens per CPU second", "slowest step / median")
    print(f"| {' | '.join(headings)} |\n| --: | --: | --: | --: |", flush=True)
    for size in sizes:
        tried(size)
    search = _in_a_process("find_rows", given, given.set)
    if "reason" in search:
        sys.exit(f"auto: {search['reason']}")
    auto = search["number"]
    if auto not in found:
        tried(auto)
    for kind in KINDS:
        best = max(one.get(kind) or 0 for one in found.values())
        share = found[auto][kind] / best
        told = f"auto takes {auto} after {search['seconds']:.0f} s"
        print(f"{told}: {share:.1%} of the best {kind.replace('_', ' ')}")


def hours(given: argparse.Namespace) -> None:
    """Print how long the command took, and how far that is from the hours."""
    print("| command | minutes asked | minutes taken | difference |\n| --- | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        data = adaptation_data(work) if given.job == "adapt" else []
        for number in range(given.times):
            out = work / f"out-{number}"
            line = command(given, out, hours=given.hours)
            if given.job == "adapt":
                line = [*ISOGLOT, "adapt", *data, "--out", str(out), "--hours", str(given.hours)]
            began = time.monotonic()
            subprocess.run(line, check=True, capture_output=True)
            taken, asked = (time.monotonic() - began) / 60, 60 * given.hours
            shown = f"{asked:.1f} | {taken:.2f} | {taken / asked - 1:+.1%}"
            print(f"| {given.job} --hours {given.hours:g} | {shown} |", flush=True)


def adaptation_data(work: Path) -> list[str]:
    """An encoder of English and Spanish, 30 steps old, and text and pairs of Swahili: arguments."""
    from isoglot.testbed import write_raw_files

    write_raw_files(work / "raw", languages=("en", "es", "sw"), num_sentences=6000, num_pairs=4000)
    encoder = [*ISOGLOT, "pretrain", "demo/checkpoint", "--out", str(work / "encoder")]
    subprocess.run(
        [*encoder, "--set", "corpus=testbed-small-en-es", "--set", "stages.0.steps=30"],
        check=True,
        capture_output=True,
        cwd=work,
    )
    texts = [f"--text={code}={work}/raw/text/{code}.txt" for code in ("en", "es", "sw")]
    return [f"{work}/encoder/model", *texts, f"--pairs=en-sw={work}/raw/pairs/en-sw.tsv"]


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
    parser.add_argument("--job", choices=("pretrain", "adapt"), default="pretrain", help="hours:")
    given = parser.parse_args()
    {"rows": rows, "hours": hours}[given.what](given)


if __name__ == "__main__":
    main()
