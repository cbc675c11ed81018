"""The papers' claims on real text: cells from one shared checkpoint, resumable across machines.

    python -m benchmarks.claims WORK [--archives FILE ...] [--out FOLDER] [--known FILE ...]
        [--stage0-steps 2000] [--steps 500] [--seconds 540] [--parallel 4]
        [--arms ...] [--seeds 0 1 2 3 4] [--small]

Reads WORK/corpus (`benchmarks.levers.data`) and WORK/tests (`benchmarks.claims.data`), or unpacks
their archives. Trains the shared checkpoint with deterministic kernels, so that every machine of
one kind gets the same weights: their fingerprint is printed, and one that differs from that of
`--known` files ends the call. Then ARM × SEED, several at a time, scored as they end. After every
cell FOLDER/claims.json and claims.md (the page of findings) are written again. No cell is begun
that would end after `--seconds`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.cells import (
    Deadline,
    Result,
    ResultsFile,
    Workers,
    loader_workers,
    quiet,
    run_cells,
    unpack,
)
from benchmarks.claims.findings import Findings
from benchmarks.claims.table import read_table
from benchmarks.claims.train import Setting, prepare_counts, train_nothing, train_stage0

COUNTING = ("gc", "gc-output", "pmi")
"""Arms that need counts of the whole corpus."""


def summary(result: Result) -> str:
    """A line about a finished cell."""
    told = "  ".join(f"{name} {value:.1f}" for name, value in result["scores"].items())
    speed = f"{result['tokens_per_second'] / 1e6:.2f}M tokens/s"
    times = f"trained {result['train_seconds']:.0f} s, scored {result['score_seconds']:.0f} s, all"
    return f"{told}  {result['tokens'] / 1e6:.1f}M tokens, {speed}, {times}"


def open_stage0(given: argparse.Namespace, results: ResultsFile) -> Setting:
    """The shared checkpoint, checked against that of earlier calls."""
    import torch

    began = time.monotonic()
    with quiet(given.work / "logs" / "stage0.txt"):
        model, weights, facts = train_stage0(
            given.work,
            given.stage0_steps,
            0 if given.small else loader_workers(1),
            small=given.small,
        )
    seconds = time.monotonic() - began
    print(f"checkpoint: weights {weights}, {facts['steps']:,} steps, {seconds:.0f} s", flush=True)
    before = results.about.get("fingerprint")
    if before not in (None, weights):
        sys.exit(
            f"the checkpoint's weights are {weights}, and those of earlier cells {before}: they "
            "would not compare. Use the same kind of machine and versions, or leave --known out."
        )
    results.about |= {
        "fingerprint": weights,
        "stage0": facts,
        "steps": given.steps,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
    }
    results.write()
    return Setting(
        work=given.work,
        start=model,
        fingerprint=weights,
        steps=given.steps,
        loader_workers=0 if given.small else loader_workers(given.parallel),
        small=given.small,
        settings=tuple(given.settings),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Test the papers' claims on real text.")
    parser.add_argument("work", type=Path, help="folder with corpus and tests, or is to be")
    parser.add_argument("--archives", type=Path, nargs="*", default=[], help="of corpus and tests")
    parser.add_argument("--out", type=Path, default=Path("claims-results"))
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="earlier claims.json")
    parser.add_argument("--stage0-steps", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=500, help="of every arm")
    parser.add_argument("--seconds", type=float, default=1e9, help="for the whole call")
    parser.add_argument("--parallel", type=int, default=4, help="cells at a time")
    parser.add_argument("--arms", nargs="+", default=[], choices=[*read_table().arms])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--stage0-only", action="store_true", help="train and score the checkpoint")
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the program")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    given = parser.parse_args()
    given.work = given.work.resolve()
    deadline = Deadline(seconds=given.seconds, expected=120.0)
    if given.small:
        given.stage0_steps, given.steps = 4, 3
    workers = Workers(given.parallel)
    for archive in given.archives:
        unpack(archive, given.work, archive.name.split(".")[0])

    def page(cells: dict[str, Result]) -> str:
        return Findings(cells, results.about).page()

    results = ResultsFile(given.out / "claims.json", given.known, render=page)
    setting = open_stage0(given, results)
    if given.stage0_only:
        print(train_nothing(setting, 0)["scores"])
        workers.close()
        return
    names = read_table().cells(given.seeds, given.arms)
    failed: list[str] = []
    for counts in (False, True):
        # what whole corpora are counted for comes last: the others need not wait
        own = [name for name in names if (name.rpartition("-")[0] in COUNTING) == counts]
        waiting = [name for name in own if name not in results.cells]
        if counts and waiting and deadline.allows():
            prepare_counts(setting, [name.rpartition("-")[0] for name in waiting])
        if waiting:
            failed += run_cells(
                own,
                setting,
                results,
                deadline,
                workers=workers,
                summary=summary,
                logs=given.work / "logs",
            )
    workers.close()
    print(f"written: {results.file}, {results.file.with_suffix('.md')}")
    sys.exit(f"{len(failed)} cells failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
