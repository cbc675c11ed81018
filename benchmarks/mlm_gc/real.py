"""Does regression on co-occurrence bring two languages together? On real text, three seeds.

    python -m benchmarks.mlm_gc.real WORK --text FOLDER [--variants none gc] [--seeds 0 1 2]

FOLDER is what `benchmarks.alignment.text` made: English and German are taken from its corpus and
tests, the words from FOLDER/dictionaries/en-de.txt (two columns). Trains every recipe of recipes/
with every seed from random weights for the same number of steps, scores the embedding table
(`word_translation.py`) and sentences on NTREX and Tatoeba (accuracy@1, both directions, best
layer), and prints means ± standard deviations. Finished cells are in WORK/results and are not run
again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, stdev

RECIPES = Path(__file__).parent / "recipes"
PAIR = "en-de"


def lay_out(work: Path, text: Path) -> None:
    """WORK with the corpus, the tests and the words of the one pair."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "corpus").exists():
        (work / "corpus").symlink_to((text / "corpus").resolve())
    for name in (f"test/ntrex/{PAIR}.tsv", f"test/tatoeba/{PAIR}.tsv", f"dictionaries/{PAIR}.txt"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes((text / name).read_bytes())


def cell(work: Path, variant: str, seed: int, settings: list[str], threads: int) -> str:
    """Train and score a variant with a seed unless it is there; gives a line about it."""
    import torch
    from benchmarks.alignment.cell import train
    from benchmarks.mlm_gc.word_translation import word_translation_scores

    from isoglot.cli.console import disable_progress_bars

    file = work / "results" / f"{variant}-{seed}.json"
    if file.is_file():
        return f"{file.stem:<12} is there already"
    torch.set_num_threads(threads)
    disable_progress_bars()
    began = time.perf_counter()
    chosen = [f"loader.num_workers={threads - 1}", *settings]
    model, facts = train(work, str(RECIPES / f"{variant}.yaml"), seed, None, chosen)
    scores = {
        **word_translation_scores(model, [work / f"dictionaries/{PAIR}.txt"]),
        **sentences(model, work),
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"variant": variant, "seed": seed, **facts, "scores": scores}))
    told = "  ".join(f"{name} {value:.2f}" for name, value in scores.items())
    seconds = time.perf_counter() - began
    return f"{file.stem:<12} {told}  {facts['tokens'] / 1e6:.1f}M tokens  {seconds:.0f} s"


def sentences(model: Path, work: Path) -> dict[str, float]:
    """Accuracy@1 in percent at the best layer of each test, plain and centered."""
    from benchmarks.alignment.cell import score

    found: dict[str, dict[int, list[float]]] = {}
    for test, one in score(model, work, ways=["", "centered"]):
        assert one.layer is not None
        name = f"{test}, centered" if one.metric.startswith("centered") else test
        found.setdefault(name, {}).setdefault(one.layer, []).append(100 * one.value)
    return {name: max(map(fmean, by_layer.values())) for name, by_layer in found.items()}


def table(work: Path) -> str:
    """Every finished cell, as a Markdown table."""
    cells: dict[str, list[dict[str, float]]] = {}
    for file in sorted((work / "results").glob("*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        cells.setdefault(found["variant"], []).append(found["scores"])
    names = list(next(iter(cells.values()))[0])
    lines = [f"| variant | seeds | {' | '.join(names)} |", "|---|--:|" + "--:|" * len(names)]
    for variant, scores in cells.items():
        columns = [[one[name] for one in scores] for name in names]
        spread = [f" ± {stdev(column):.2f}" if len(column) > 1 else "" for column in columns]
        means = [f"{fmean(column):.2f}{sd}" for column, sd in zip(columns, spread, strict=True)]
        lines.append(f"| {variant} | {len(scores)} | {' | '.join(means)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Study co-occurrence on real text.")
    parser.add_argument("work", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="the alignment study's folder")
    parser.add_argument("--variants", nargs="+", default=["none", "gc"], help="names in recipes/")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--parallel", type=int, default=1, help="cells at a time")
    parser.add_argument("--set", nargs="+", default=[], metavar="key=value", dest="settings")
    given = parser.parse_args()
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import objectives_of
    from isoglot.recipe import load_recipe

    lay_out(given.work, given.text)
    for variant in given.variants:
        recipe = load_recipe(str(RECIPES / f"{variant}.yaml"), given.settings)
        for objective in objectives_of(recipe).values():
            # runs side by side must not count the same pairs
            objective.prepare(Corpus.open(given.work / "corpus"))
    threads = max(1, (os.cpu_count() or 1) // given.parallel)
    with ProcessPoolExecutor(given.parallel, multiprocessing.get_context("spawn")) as pool:
        waiting = [
            pool.submit(cell, given.work, variant, seed, given.settings, threads)
            for seed in given.seeds
            for variant in given.variants
        ]
        for one in waiting:
            print(one.result(), flush=True)
    print(table(given.work))


if __name__ == "__main__":
    main()
