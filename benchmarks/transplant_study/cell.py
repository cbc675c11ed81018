"""One cell of the study: an arm with a seed, trained, then scored at points along training.

    python -m benchmarks.transplant_study.cell WORK ARM SEED [--set key=value ...]

Reads WORK as `prepare.py` left it, and WORK/runs/meta-0/model for the arms that start from it or
learn from it; writes WORK/runs/ARM-SEED and, last of all, WORK/results/ARM-SEED.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from benchmarks.alignment.cell import score, train

from isoglot.atomic import write_json
from isoglot.pretraining.export import INTERMEDIATE
from isoglot.pretraining.requirements import TRANSPLANTED
from isoglot.report.metrics import RunMetrics
from isoglot.study.transfer import heldout_losses

RECIPES = Path(__file__).parent / "recipes"
META = "meta"
SCRATCH = (META, "scratch", "scratch-long")
"""Arms that know nothing of the English model."""


def settings_of(work: Path, arm: str) -> list[str]:
    """What an arm's recipe cannot know: where the English model and the dictionaries lie."""
    model = (work / "runs" / f"{META}-0" / "model").resolve()
    if arm in SCRATCH:
        return []
    if arm == "kd":
        return [f"objectives.distill.teacher={model}"]
    said = [f"model.init_from={model}"]
    if arm == "dict":
        said.append(f'transplant.dictionaries=["{work.resolve()}/dictionaries/*.txt"]')
    return said


def points(run: Path, work: Path) -> list[dict[str, Any]]:
    """Step by step: held-out losses by language, and Tatoeba by layer and pair, in percent."""
    losses = heldout_losses(RunMetrics(run), "mlm")
    kept = {int(model.name[len("step-") :]): model for model in (run / INTERMEDIATE).glob("step-*")}
    found = []
    for step in sorted({*kept, *map(int, losses)}):
        tatoeba: dict[int, dict[str, list[float]]] = {}
        if step in kept:
            for _, one in score(kept[step], work, ways=[""]):
                assert one.layer is not None
                layer = tatoeba.setdefault(one.layer, {})
                layer.setdefault(one.language, []).append(100 * one.value)
        found.append(
            {
                "step": step,
                "losses": losses.get(step, {}),
                "tatoeba": {
                    layer: {pair: fmean(values) for pair, values in by_pair.items()}
                    for layer, by_pair in tatoeba.items()
                },
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and score one cell of the study.")
    parser.add_argument("work", type=Path)
    parser.add_argument("arm")
    parser.add_argument("seed", type=int)
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--set", action="append", default=[], metavar="key=value", dest="settings")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    corpus = given.work / ("english" if given.arm == META else "corpus")
    _, facts = train(
        given.work,
        str(RECIPES / f"{given.arm}.yaml"),
        given.seed,
        None,
        [*settings_of(given.work, given.arm), *given.settings],
        corpus=corpus,
    )
    began = time.perf_counter()
    run = given.work / "runs" / f"{given.arm}-{given.seed}"
    along = points(run, given.work)
    last = along[-1]
    others = [loss for code, loss in last["losses"].items() if code != "en"]
    means = {"en loss": last["losses"]["en"]}
    if others:
        means["other loss"] = fmean(others)
        means["tatoeba"] = max(fmean(of.values()) for of in last["tatoeba"].values())
    report = run / TRANSPLANTED / "transplant.json"
    result = {
        "arm": given.arm,
        "seed": given.seed,
        **facts,
        "score_seconds": time.perf_counter() - began,
        "means": means,
        "points": along,
        "kinds": json.loads(report.read_text())["kinds"] if report.is_file() else None,
    }
    file = given.work / "results" / f"{given.arm}-{given.seed}.json"
    write_json(file, result)


if __name__ == "__main__":
    main()
