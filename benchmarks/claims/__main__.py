"""The papers' claims on real text: cells from shared checkpoints, resumable across machines.

    python -m benchmarks.claims WORK [--archives FILE ...] [--out FOLDER] [--known FILE ...]
        [--stage0-steps 2000] [--steps 500] [--seconds 540] [--parallel 4]
        [--arms ...] [--seeds 0 1 2 3 4] [--small]

Reads WORK/corpus (`benchmarks.levers.data`), WORK/tests (`benchmarks.claims.data`), for MetaXLM's
arms WORK/english-corpus and WORK/dictionaries (`benchmarks.claims.english`), or unpacks their
archives. Trains the checkpoints that cells need with deterministic kernels, so that every machine
of one kind gets the same weights: their fingerprints are printed, and one that differs from that of
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
from benchmarks.claims.checkpoints import (
    TrainedCheckpoint,
    checkpoints_in,
    known_fingerprints,
    train_checkpoint,
)
from benchmarks.claims.findings import Findings
from benchmarks.claims.table import DEFAULT, read_table
from benchmarks.claims.train import Setting, prepare_counts, train_nothing

COUNTING = ("gc", "gc-output", "pmi")
"""Arms that need counts of the whole corpus."""
CHECKPOINT_SECONDS = 240.0
"""What must be left for a checkpoint that is trained after other cells, and for its own cells."""


def summary(result: Result) -> str:
    """A line about a finished cell."""
    told = "  ".join(f"{name} {value:.1f}" for name, value in result["scores"].items())
    speed = f"{result['tokens_per_second'] / 1e6:.2f}M tokens/s"
    times = f"trained {result['train_seconds']:.0f} s, scored {result['score_seconds']:.0f} s, all"
    return f"{told}  {result['tokens'] / 1e6:.1f}M tokens, {speed}, {times}"


def arm_of(cell: str) -> str:
    """The arm of a cell."""
    return cell.rpartition("-")[0]


def rounds(names: list[str]) -> list[list[str]]:
    """Cells that wait for nothing but the default checkpoint; for counts; for other checkpoints.

    What whole corpora are counted for, and what starts elsewhere, comes last: the others need not
    wait for it.
    """
    found: list[list[str]] = [[], [], []]
    for name in names:
        arm = arm_of(name)
        elsewhere = read_table().needs(arm) != {DEFAULT}
        found[2 if elsewhere else int(arm in COUNTING)].append(name)
    return found


def open_checkpoint(
    name: str, given: argparse.Namespace, results: ResultsFile
) -> TrainedCheckpoint:
    """A checkpoint, checked against that of earlier calls."""
    import torch

    began = time.monotonic()
    with quiet(given.work / "logs" / f"checkpoint-{name}.txt"):
        trained, facts = train_checkpoint(
            name,
            given.work,
            given.stage0_steps,
            0 if given.small else loader_workers(1),
            small=given.small,
        )
    seconds, weights = time.monotonic() - began, trained.fingerprint
    told = f"weights {weights}, {facts['steps']:,} steps, {seconds:.0f} s"
    print(f"checkpoint {name}: {told}", flush=True)
    before = known_fingerprints(results.about, results.cells.values()).get(name, set())
    if before - {weights}:
        sys.exit(
            f"the weights of the checkpoint {name} are {weights}, and those of earlier cells "
            f"{', '.join(sorted(before))}: they would not compare. Use the same kind of machine "
            "and versions, or leave --known out."
        )
    about = {key: of for key, of in results.about.items() if key not in ("fingerprint", "stage0")}
    results.about = about | {
        "checkpoints": checkpoints_in(results.about) | {name: {"fingerprint": weights, **facts}},
        "steps": given.steps,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
    }
    results.write()
    return trained


class Study:
    """A call: the checkpoints it has opened, its worker processes, its deadline."""

    def __init__(self, given: argparse.Namespace, deadline: Deadline) -> None:
        self.given, self.deadline = given, deadline
        self.workers = Workers(given.parallel)
        self.checkpoints: dict[str, TrainedCheckpoint] = {}

        def page(cells: dict[str, Result]) -> str:
            return Findings(cells, self.results.about).page()

        self.results = ResultsFile(given.out / "claims.json", given.known, render=page)

    def setting(self, checkpoints: set[str]) -> Setting:
        """What cells share, these checkpoints among it."""
        given = self.given
        for name in sorted(checkpoints - set(self.checkpoints)):
            self.checkpoints[name] = open_checkpoint(name, given, self.results)
        return Setting(
            work=given.work,
            checkpoints=dict(self.checkpoints),
            steps=given.steps,
            stage0_steps=given.stage0_steps,
            loader_workers=0 if given.small else loader_workers(given.parallel),
            small=given.small,
            settings=tuple(given.settings),
        )

    def run(self, names: list[str]) -> list[str]:
        """Run cells, one kind after the other; gives those that failed."""
        failed: list[str] = []
        for own in rounds(names):
            waiting = [name for name in own if name not in self.results.cells]
            arms = [arm_of(name) for name in waiting]
            needs = {one for arm in arms for one in read_table().needs(arm)}
            if not waiting or not self._has_time(needs, waiting):
                continue
            setting = self.setting(needs)
            counting = [arm for arm in arms if arm in COUNTING]
            if counting and self.deadline.allows():
                prepare_counts(setting, counting)
            failed += run_cells(
                waiting,
                setting,
                self.results,
                self.deadline,
                workers=self.workers,
                summary=summary,
                logs=self.given.work / "logs",
            )
        return failed

    def _has_time(self, needs: set[str], waiting: list[str]) -> bool:
        """Is there time for checkpoints that are yet to be trained? The first ones always have."""
        late = bool(self.checkpoints) and not needs <= set(self.checkpoints)
        if late and self.deadline.left < CHECKPOINT_SECONDS:
            print(f"not begun for lack of time: {', '.join(waiting)}", flush=True)
            return False
        return True


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Test the papers' claims on real text.")
    parser.add_argument("work", type=Path, help="folder with corpus and tests, or is to be")
    parser.add_argument("--archives", type=Path, nargs="*", default=[], help="of corpora and tests")
    parser.add_argument("--out", type=Path, default=Path("claims-results"))
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="earlier claims.json")
    parser.add_argument("--stage0-steps", type=int, default=2000, help="of the default checkpoint")
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
    if given.small:
        given.stage0_steps, given.steps = 4, 3
    return given


def main() -> None:
    given = arguments()
    study = Study(given, Deadline(seconds=given.seconds, expected=120.0))
    for archive in given.archives:
        unpack(archive, given.work, archive.name.split(".")[0])
    if given.stage0_only:
        print(train_nothing(study.setting({DEFAULT}), 0)["scores"])
        study.workers.close()
        return
    failed = study.run(read_table().cells(given.seeds, given.arms))
    study.workers.close()
    file = study.results.file
    print(f"written: {file}, {file.with_suffix('.md')}")
    sys.exit(f"{len(failed)} cells failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
