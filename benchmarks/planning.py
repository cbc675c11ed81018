"""`batch.micro_rows: auto` against numbers by hand, and `--hours` against the clock.

    python -m benchmarks.planning rows CORPUS --recipe xlm --set model.size=small
    python -m benchmarks.planning hours --recipe tiny --hours 0.1 --times 2
    python -m benchmarks.planning hours --job adapt --hours 0.1 --times 2

`rows` trains some steps with every number of rows at a time that divides a step (each in a process
of its own, so that memory that runs out ends only that), then with `auto`, and prints tokens per
second of each: the mean over the steps after the first five, by the clock and by the CPU time of
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
from pathlib import Path
from typing import Any

SKIPPED = 5
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


def speed(given: argparse.Namespace, micro_rows: int | str) -> dict[str, Any]:
    """Tokens per second with a number of rows at a time; none: it does not fit."""
    quick = (
        f"batch.micro_rows={micro_rows}",
        f"stages.0.steps={given.steps}",
        "stages.0.epochs=null",
        "logging.every_steps=1",
        "logging.validate_examples=1",
        "logging.trackers=[]",
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        corpus = str(given.corpus) if given.corpus else None
        work = json.dumps([given.recipe, corpus, str(out), [*given.set, *quick]])
        line = [
            sys.executable,
            "-c",
            f"from benchmarks.planning import timed_run; timed_run({work!r})",
        ]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "killed"
            return {"micro_rows": micro_rows, "tokens_per_second": None, "reason": reason}
        times = json.loads((out / "times.json").read_text())
        lines = (out / "metrics.jsonl").read_text().splitlines()
        tokens = [one["tokens"] for one in map(json.loads, lines) if "seconds" in one][SKIPPED:]
        plan = out / "plan.json"
        chosen = json.loads(plan.read_text())["micro_rows"] if plan.is_file() else micro_rows
    clock, process = (
        last - first for first, last in zip(times[SKIPPED - 1], times[-1], strict=True)
    )
    rates = {
        "tokens_per_second": sum(tokens) / clock,
        "tokens_per_cpu_second": sum(tokens) / process,
    }
    return {"micro_rows": chosen, **rates}


def timed_run(work: str) -> None:
    """Train, and write the clock and the CPU time of the process after every step."""
    from isoglot import pretrain

    recipe, corpus, out, settings = json.loads(work)
    times: list[tuple[float, float]] = []
    pretrain(
        recipe,
        corpus,
        out,
        settings=settings,
        on_step=lambda _: times.append((time.perf_counter(), time.process_time())),
    )
    (Path(out) / "times.json").write_text(json.dumps(times))


def rows(given: argparse.Namespace) -> None:
    """Print a table: every number by hand, and which of them auto takes."""
    from isoglot.recipe import load_recipe

    whole = load_recipe(given.recipe, given.set).batch.rows
    sizes = given.sizes or [size for size in range(1, whole + 1) if whole % size == 0]
    found: dict[int, dict[str, Any]] = {}

    def tried(size: int) -> None:
        found[size] = one = speed(given, size)
        shown = " | ".join(f"{one[kind]:,.0f}" for kind in KINDS if one["tokens_per_second"])
        print(f"| {size} | {shown or one['reason']} |", flush=True)

    print("| rows at a time | tokens/s | tokens per CPU second |\n| --: | --: | --: |", flush=True)
    for size in sizes:
        tried(size)
    auto = speed(given, "auto")["micro_rows"]
    if auto not in found:
        tried(auto)
    for kind in KINDS:
        best = max(one.get(kind) or 0 for one in found.values())
        share = found[auto][kind] / best
        print(f"auto takes {auto}: {share:.1%} of the best {kind.replace('_', ' ')}")


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
