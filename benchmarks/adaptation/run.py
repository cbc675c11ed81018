"""`isoglot adapt` with several seeds, and the table of scores before and after.

    python -m benchmarks.adaptation.run WORK ENCODER --text all --seeds 0 1 2 [-- --hours 0.1]
    python -m benchmarks.adaptation.run WORK ENCODER --unit blocks --steps 300

Adapts the encoder to Hausa and Romanian with text of `all` languages in WORK/raw/text, or of
`english` and the new languages alone, and translations from English of the new languages. `--unit`
and `--steps` edit the plan before it is carried out: MLM reads text in blocks alone or as single
sentences alone instead of half and half, for so many steps. What follows `--` goes to `isoglot
adapt`. Finished adaptations are not repeated. Bits per character of
known languages without text in an adaptation are computed on the held-out lines of the ones with
text, if these are there already. Times are those of the clock: of the whole command, and until the
first score is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import yaml
from benchmarks.adaptation.data import NEW_LANGUAGES
from benchmarks.alignment.languages import PIVOT

NEW = [language.code for language in NEW_LANGUAGES]
TEXTS = ("all", "english")
STREAMS = {"blocks": "text", "sentences": "sentences"}
"""What MLM reads -> the stream of the plan that reads it."""
FIRST_NUMBER = "tokens per word"
"""What is in the first line with a score."""
Scores = dict[tuple[str, str], tuple[float, float]]
"""(metric, language or direction) -> before and after."""


def edit_plan(out: Path, unit: str | None, steps: int | None) -> None:
    """Leave one of the two streams of text, with the share of both, and set the steps."""
    file = out / "plan" / "recipe.yaml"
    recipe: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    stage = recipe["stages"][0]
    stage["steps"] = steps or stage["steps"]
    if unit is not None:
        of_text = {name: stage["streams"].pop(name) for name in STREAMS.values()}
        share = sum(stream["share"] for stream in of_text.values())
        stage["streams"][STREAMS[unit]] = {**of_text[STREAMS[unit]], "share": share}
    file.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")


def adapt(work: Path, encoder: Path, given: argparse.Namespace, seed: int) -> Path:
    """Run the command as a user would; its folder."""
    name = "-".join(
        str(one) for one in (given.text, given.unit, given.steps, seed) if one is not None
    )
    out = work / "adapted" / name
    files = sorted((work / "raw" / "text").glob("*.txt"))
    chosen = [file for file in files if given.text == "all" or file.stem in (*NEW, PIVOT)]
    data = [f"--text={file.stem}={file}" for file in chosen]
    data += [f"--pairs={PIVOT}-{code}={work}/raw/pairs/{PIVOT}-{code}.tsv" for code in NEW]
    command = [sys.executable, "-m", "isoglot", "adapt", str(encoder), *data, *given.options]
    command += ["--seed", str(seed), "--out", str(out)]
    began = time.perf_counter()
    environment = {**os.environ, "COLUMNS": "120"}
    log = work / "logs" / f"{name}.txt"
    log.parent.mkdir(exist_ok=True)
    if (given.unit or given.steps) and not (out / "plan" / "plan.json").is_file():
        subprocess.run([*command, "--dry-run"], env=environment, check=True, capture_output=True)
        edit_plan(out, given.unit, given.steps)
    first: float | None = None
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running,
    ):
        for line in running.stdout or ():
            if first is None and line.startswith("  ") and FIRST_NUMBER in line:
                first = time.perf_counter() - began
            written.write(f"{time.perf_counter() - began:7.1f} s  {line}")
            written.flush()
    seconds = time.perf_counter() - began
    shown = "no score" if first is None else f"first score after {first:.0f} s"
    print(f"{name}: exit {running.returncode}, {seconds:.0f} s, {shown} ({log})", flush=True)
    return out


def read_scores(out: Path) -> Scores:
    """The scores of a finished adaptation."""
    found = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    return {
        (one["metric"], one["where"]): (one["before"], one["after"]) for one in found["comparisons"]
    }


def other_languages(encoder: Path, out: Path, lines_of: Path) -> Scores:
    """Bits per character of languages that had no text in an adaptation."""
    from isoglot.evaluation.bits_per_character import code_lengths
    from isoglot.evaluation.loading import load_for_scoring

    own = {path.stem for path in (out / "heldout" / "text").glob("*.txt")}
    files = [path for path in lines_of.glob("*.txt") if path.stem not in own]
    bits: dict[str, list[float]] = defaultdict(list)
    for folder in (encoder, out / "model"):
        model, tokenizer = load_for_scoring(folder)
        for file in files:
            lines = file.read_text(encoding="utf-8").splitlines()
            coded = code_lengths(model, tokenizer, lines, language=file.stem)
            bits[file.stem].append(coded.bits_per_character)
    return {("bits per character", code): (one[0], one[1]) for code, one in bits.items()}


def print_table(runs: list[Scores]) -> None:
    """Mean and standard deviation over seeds, and the mean change."""
    print("| metric | where | before | after | change |\n|---|---|--:|--:|--:|")
    for metric, where in sorted(runs[0]):
        before = [run[metric, where][0] for run in runs]
        after = [run[metric, where][1] for run in runs]
        change = mean(b / a - 1 if a else float("nan") for a, b in zip(before, after, strict=True))
        spread = f" ± {stdev(after):.3f}" if len(after) > 1 else ""
        cells = [f"{mean(before):.3f}", f"{mean(after):.3f}{spread}", f"{100 * change:+.1f} %"]
        print(f"| {metric} | {where} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Adapt an encoder to two new languages.")
    parser.add_argument("work", type=Path, help="the folder that data.py made")
    parser.add_argument("encoder", type=Path, help="the encoder that encoder.py made")
    parser.add_argument("--text", choices=TEXTS, default="all")
    parser.add_argument("--unit", choices=STREAMS, help="what MLM reads, instead of both")
    parser.add_argument("--steps", type=int, help="training steps, instead of the plan's")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = [*sys.argv[1:], "--"]
    end = arguments.index("--")
    given = parser.parse_args(arguments[:end])
    given.options = arguments[end + 1 : -1]
    outs = [adapt(given.work, given.encoder, given, seed) for seed in given.seeds]
    runs = []
    for seed, out in zip(given.seeds, outs, strict=True):
        scores = read_scores(out)
        lines_of = given.work / "adapted" / f"all-{seed}" / "heldout" / "text"
        if given.text == "english" and lines_of.is_dir():
            scores |= other_languages(given.encoder, out, lines_of)
        runs.append(scores)
    print_table(runs)


if __name__ == "__main__":
    main()
