"""Unsupervised translation as arms of the study: its corpus, and BLEU as scores.

    python -m benchmarks.claims.translation WORK [--data DATA] [--vocabulary 16000] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA); writes text of English and German that are no translations of each
other (`benchmarks.unmt.real_text`), prepared with a vocabulary of its own, and the tests:

    WORK/unmt-en-de/corpus    WORK/unmt-en-de/tests/multi30k.tsv, wmt21.tsv
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import tempfile
import traceback
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.alignment.text import pack

PAIR = "en-de"
FOLDER = f"unmt-{PAIR}"
SMALL = ("stages.0.steps=3", "stages.1.steps=2", "model.num_layers=1")
"""What `--small` changes beside the batch and the width."""
SMALL_TESTS = 4
"""Sentences of each test and direction that `--small` translates."""


def write_translation(data: Path, work: Path, vocabulary: int, *, lines: int | None = None) -> None:
    """WORK/unmt-en-de; `lines`: of each text and test, to try things out."""
    from benchmarks.unmt.real import prepared
    from benchmarks.unmt.real_text import write

    place = work / FOLDER
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch)
        for name, number in write(data, raw, (PAIR,)).items():
            print(f"{number:8,}  {name}", flush=True)
        _, tests = prepared(raw / PAIR, place, vocabulary, lines)
        (place / "tests").mkdir(parents=True, exist_ok=True)
        for file in tests.values():
            shutil.copy(file, place / "tests" / file.name)


def all_scores(model: Path, tests: Path, *, small: bool) -> dict[str, Any]:
    """BLEU and the perplexity of MASS; `errors` says why translating has failed."""
    found: dict[str, Any] = {"scores": {}}
    try:
        found = translation_scores(model, tests, small=small)
    except Exception:  # minutes of training are worth keeping
        found["errors"] = {"translation": traceback.format_exc(limit=-6)}
    found["scores"] |= mass_perplexity(model.parent)
    return found


def translation_scores(model: Path, tests: Path, *, small: bool) -> dict[str, Any]:
    """BLEU (sacrebleu) of both directions of each test, and some translations to look at."""
    from benchmarks.unmt.cell import score

    files = sorted(tests.glob("*.tsv"))
    with tempfile.TemporaryDirectory() as scratch:
        if small:
            files = [_shortened(file, Path(scratch)) for file in files]
        found = score(model, {f"{file.stem}:{PAIR}": file for file in files})["bleu"]
    return {
        "scores": {score_name(name): value["sacrebleu"] for name, value in found.items()},
        "details": {name: value["examples"] for name, value in found.items()},
    }


def score_name(direction: str) -> str:
    """`multi30k:en-de` as the name of a score: `multi30k_en_de`."""
    return direction.replace(":", "_").replace("-", "_")


def _shortened(file: Path, folder: Path) -> Path:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    short = folder / file.name
    short.write_text("".join(lines[:SMALL_TESTS]), encoding="utf-8")
    return short


def mass_perplexity(run: Path) -> dict[str, float]:
    """Held-out perplexity of MASS, exp of the mean loss of both languages."""
    from isoglot.report.metrics import RunMetrics
    from isoglot.study.transfer import heldout_losses

    losses = heldout_losses(RunMetrics(run), "mass")
    return {"mass_perplexity": math.exp(fmean(losses[max(losses)].values()))} if losses else {}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the corpus and tests of translation.")
    parser.add_argument("work", type=Path, help="the folder of the study")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--vocabulary", type=int, default=16_000, help="tokens")
    parser.add_argument("--lines", type=int, help="of each text and test, to try things out")
    parser.add_argument("--pack", type=Path, help=f"also write this .tar.xz, {FOLDER}.tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    write_translation(given.data, given.work, given.vocabulary, lines=given.lines)
    if given.pack is not None:
        pack(given.work, given.pack, (f"{FOLDER}/corpus", f"{FOLDER}/tests"))


if __name__ == "__main__":
    main()
