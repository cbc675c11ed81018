"""The papers' claims on real text: cells from shared checkpoints, resumable across machines.

    python -m benchmarks.claims WORK [--archives FILE ...] [--out FOLDER] [--known FILE ...]
        [--stage0-steps 2000] [--steps 500] [--seconds 540] [--parallel 4]
        [--arms ...] [--seeds 0 1 2 3 4] [--cells ARM-SEED ...] [--small]

Reads WORK/corpus (`benchmarks.levers.data`), WORK/tests (`benchmarks.claims.data`), for MetaXLM's
arms WORK/english-corpus and WORK/dictionaries (`benchmarks.claims.english`), for translation
WORK/unmt-en-de (`benchmarks.claims.translation`), or unpacks their archives. Worker processes train
the checkpoints that cells need with deterministic kernels, so that every machine of one kind gets
the same weights: their fingerprints are printed, and cells of a checkpoint that differs from that
of `--known` files are not run. Then ARM × SEED, several at a time, scored as they end. After every
cell FOLDER/claims.json and claims.md (the page of findings) are written again. No cell is begun
that would end after `--seconds`; a cell that was ended then continues in the next call with WORK.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cells import CellQueue, Deadline, ResultsFile, loader_workers, unpack
from benchmarks.claims.checkpoints import TrainedCheckpoint, checkpoints_in, known_fingerprints
from benchmarks.claims.findings import Findings
from benchmarks.claims.table import CHECKPOINT, COUNTS, DEFAULT, read_table
from benchmarks.claims.train import Setting, train_nothing
from benchmarks.workers import Result, Workers

if TYPE_CHECKING:
    from collections.abc import Collection

SHARE_OF_TRAINING = 0.5
"""Of a cell's time, the other half being scores; an arm of more steps costs accordingly more."""
TESTS = (
    "ntrex/dev",
    "ntrex/test",
    "tatoeba",
    "facts",
    *(f"eval/{name}" for name in ("word_align", "bli", "ud_pos", "ner", "nli", "tydiqa")),
)
"""Folders of WORK/tests that every encoder is scored on."""
BLEU_PACKAGES = ("sacrebleu", "sacremoses")
CHECKPOINT_COST = 0.6
"""Of the default checkpoint, in cells: 66 s of an H200, where a cell takes 100 to 180 s."""


def summary(result: Result) -> str:
    """A line about a finished cell."""
    told = "  ".join(f"{name} {value:.1f}" for name, value in result["scores"].items())
    speed = f"{result['tokens_per_second'] / 1e6:.2f}M tokens/s"
    times = f"trained {result['train_seconds']:.0f} s, scored {result['score_seconds']:.0f} s, all"
    return f"{told}  {result['tokens'] / 1e6:.1f}M tokens, {speed}, {times}"


def arm_of(cell: str) -> str:
    """The arm of a cell."""
    return cell.rpartition("-")[0]


def missing_data(work: Path, arms: Collection[str]) -> list[str]:
    """Files and folders that arms or their scores read and WORK does not have, and packages."""
    table, needed = read_table(), dict[str, None]()
    for name in arms:
        arm = table.arms[name]
        corpora = [arm.corpus, *(table.checkpoints[one].corpus for one in table.needs(name))]
        needed |= dict.fromkeys(f"{corpus}/manifest.json" for corpus in corpora)
        tests = f"{Path(arm.corpus).parent}/tests" if arm.is_translation else "tests"
        parts = [""] if arm.is_translation else TESTS
        needed |= dict.fromkeys(f"{tests}/{part}" for part in parts)
        told = " ".join(arm.settings)
        needed |= {"dictionaries": None} if "<work>/dictionaries" in told else {}
        needed |= {"corpus/knowledge": None} if arm.reads_knowledge else {}
    packages = BLEU_PACKAGES if any(table.arms[name].is_translation for name in arms) else ()
    return [name for name in needed if not (work / name).exists()] + [
        f"the package {name}" for name in packages if find_spec(name) is None
    ]


class Study:
    """A call: its cells, what they share, its results."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.table = given, read_table()
        self.results = ResultsFile(given.out / "claims.json", given.known, render=self._page)
        self._check_steps()
        self.setting = Setting(
            work=given.work,
            checkpoints={},
            steps=given.steps,
            stage0_steps=given.stage0_steps,
            loader_workers=given.loader_workers,
            small=given.small,
            settings=tuple(given.settings),
        )

    def _page(self, cells: dict[str, Result]) -> str:
        return Findings(cells, self.results.about).page()

    def _check_steps(self) -> None:
        """Refuse cells that would not compare with those of earlier calls."""
        told = self.results.about.get("steps", self.given.steps)
        if told != self.given.steps:
            sys.exit(
                f"earlier cells have {told} steps, these would have {self.given.steps}: they would "
                f"not compare. Give --steps {told}, or leave --known out and choose another --out."
            )

    def needs(self, cell: str) -> list[str]:
        """What is prepared before a cell: checkpoints, counts of a corpus."""
        arm = arm_of(cell)
        found = [f"{CHECKPOINT}{name}" for name in sorted(self.table.needs(arm))]
        counts = self.table.arms[arm].counts
        return found if counts is None else [*found, f"{COUNTS}{counts}"]

    def cost(self, name: str) -> float:
        """Seconds of a cell or a preparation, in cells of the usual number of steps."""
        if name.startswith(COUNTS):
            return CHECKPOINT_COST
        if name.startswith(CHECKPOINT):
            share = self.table.checkpoints[name.removeprefix(CHECKPOINT)].steps_share
            return CHECKPOINT_COST * share
        arm = self.table.arms[arm_of(name)]
        if arm.cost is not None:
            return arm.cost
        steps = self.table.steps(arm_of(name), self.given.steps, self.given.stage0_steps)
        ratio = steps / arm.steps(self.given.steps)
        return 1 - SHARE_OF_TRAINING + SHARE_OF_TRAINING * ratio

    def prepared(self, name: str, result: Result) -> None:
        """Keep what a preparation gives; refuse a checkpoint that is not that of earlier calls."""
        if not name.startswith(CHECKPOINT):
            print(f"{name}: {result['seconds']:.0f} s", flush=True)
            return
        checkpoint, facts = name.removeprefix(CHECKPOINT), result["facts"]
        trained: TrainedCheckpoint = result["trained"]
        weights = trained.fingerprint
        told = f"weights {weights}, {facts['steps']:,} steps, {result['seconds']:.0f} s"
        print(f"checkpoint {checkpoint}: {told}", flush=True)
        results = self.results
        before = known_fingerprints(results.about, results.cells.values()).get(checkpoint, set())
        if before - {weights}:
            raise ValueError(
                f"the weights of the checkpoint {checkpoint} are {weights}, and those of earlier "
                f"cells {', '.join(sorted(before))}: they would not compare. Use the same kind of "
                "machine and versions, or leave --known out."
            )
        self.setting.checkpoints[checkpoint] = trained
        about = {
            key: of for key, of in results.about.items() if key not in ("fingerprint", "stage0")
        }
        known = checkpoints_in(results.about)
        results.about = about | {
            "checkpoints": known | {checkpoint: {"fingerprint": weights, **facts}},
            "steps": self.given.steps,
            **result["machine"],
        }
        results.write()

    def _possible(self, names: list[str]) -> list[str]:
        """Cells without those that lack data; an error if they were named, or all lack some."""
        given = self.given
        lacking: dict[str, list[str]] = {}
        for arm in dict.fromkeys(map(arm_of, names)):
            if missing := missing_data(given.work, [arm]):
                lacking.setdefault(", ".join(missing), []).append(arm)
        left_out = {arm for arms in lacking.values() for arm in arms}
        kept = [name for name in names if arm_of(name) not in left_out]
        if lacking and (given.arms or given.cells or not kept):
            sys.exit(
                f"{given.work} lacks {'; '.join(lacking)}. Write them as README.md says, name "
                "their archives with --archives, or choose other arms with --arms."
            )
        for told, arms in lacking.items():
            print(f"left out for lack of {told}: {', '.join(arms)}", flush=True)
        return kept

    def run(self, names: list[str], deadline: Deadline) -> list[str]:
        """Run cells; gives those that failed."""
        given = self.given
        threads = max(1, (os.cpu_count() or 1) // given.parallel)
        with Workers(given.parallel, trainings=given.trainings, threads=threads) as workers:
            for archive in given.archives:
                unpack(archive, given.work)
            names = self._possible(names)
            queue = CellQueue(
                work=self.setting,
                results=self.results,
                deadline=deadline,
                workers=workers,
                summary=summary,
                logs=given.work / "logs",
                cost=self.cost,
                needs=self.needs,
                prepared=self.prepared,
            )
            return queue.run(names)


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
    parser.add_argument("--trainings", type=int, help="of these in training at a time (all)")
    parser.add_argument("--arms", nargs="+", default=[], choices=[*read_table().arms])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--cells", nargs="+", default=[], help="ARM-SEED in this order, no others")
    parser.add_argument("--loader-workers", type=int, help="of each cell")
    parser.add_argument("--stage0-only", action="store_true", help="train and score the checkpoint")
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the program")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    given = parser.parse_args()
    given.work = given.work.resolve()
    if given.small:
        given.stage0_steps, given.steps, given.loader_workers = 4, 3, 0
    elif given.loader_workers is None:
        given.loader_workers = loader_workers(given.trainings or given.parallel)
    for cell in given.cells:
        if arm_of(cell) not in read_table().arms:
            parser.error(f"--cells: there is no arm {arm_of(cell)!r} ({cell})")
    return given


def main() -> None:
    given = arguments()
    study = Study(given)
    if given.stage0_only:
        setting = study.setting
        study.prepared(f"{CHECKPOINT}{DEFAULT}", setting(f"{CHECKPOINT}{DEFAULT}"))
        print(train_nothing(setting, 0)["scores"])
        return
    names = given.cells or read_table().cells(given.seeds, given.arms)
    failed = study.run(names, Deadline(seconds=given.seconds, expected=120.0))
    file = study.results.file
    print(f"written: {file}, {file.with_suffix('.md')}")
    sys.exit(f"{len(failed)} failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
