"""Does regression on co-occurrence bring languages together? On generated text, seeds side by side.

    python -m benchmarks.mlm_gc.testbed WORK [VARIANT ...] [--seeds 3] [--steps 1000] [--minutes M]

Trains every variant with every seed for the same number of steps on the testbed's text (no
translations, except for the variants with TLM), two runs at a time, and prints means ± standard
deviations over seeds:

    perplexity of masked tokens in held-out text, mean over languages
    gc         loss of the regression there
    cosine     of words and their translations in the embedding table (the paper's Table 2); beside
               it the cosine of words that are no translations, without which it says little
    p@1        a word's nearest neighbor (CSLS) in the table is its translation, in percent
    accuracy   a test sentence's nearest neighbor is its translation, at the best layer, centered,
               in percent

Finished runs are kept in WORK and not run again; with --minutes, no run begins after so many.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("ablations/mlm-gc-tiny-none", ()),
    "gc": ("mlm-gc-tiny", ()),
    "n=1": ("mlm-gc-tiny", ("objectives.cooccurrence.pairs.window=1",)),
    "n=3": ("mlm-gc-tiny", ("objectives.cooccurrence.pairs.window=3",)),
    "n=4": ("mlm-gc-tiny", ("objectives.cooccurrence.pairs.window=4",)),
    "lambda=0.1": ("mlm-gc-tiny", ("objectives.cooccurrence.weight=0.1",)),
    "lambda=0.5": ("mlm-gc-tiny", ("objectives.cooccurrence.weight=0.5",)),
    "lambda=2": ("mlm-gc-tiny", ("objectives.cooccurrence.weight=2.0",)),
    "released": ("mlm-gc-tiny", ("objectives.cooccurrence.pairs.weights=released",)),
    "output": ("ablations/mlm-gc-tiny-output", ()),
    "alone": ("ablations/mlm-gc-tiny-alone", ()),
    "pmi": ("ablations/mlm-gc-tiny-pmi", ()),
    "none+tlm": ("ablations/mlm-gc-tiny-none+tlm", ()),
    "gc+tlm": ("ablations/mlm-gc-tiny+tlm", ()),
    "no warm-up": ("mlm-gc-tiny", ("optimizer.warmup_steps=0",)),
    "no scale": ("mlm-gc-tiny", ("objectives.cooccurrence.scale=false",)),
    "no factor": ("mlm-gc-tiny", ("objectives.cooccurrence.normalize_by=none",)),
    "no warm-up, no gc": ("ablations/mlm-gc-tiny-none", ("optimizer.warmup_steps=0",)),
}
"""Name -> a recipe and what is changed in it."""


def train(work: Path, variant: str, seed: int, steps: int) -> dict[str, float]:
    """Train and score one variant with one seed."""
    import torch
    from rich.console import Console

    from isoglot.cli.console import disable_progress_bars
    from isoglot.corpus import Corpus
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import load_recipe

    torch.set_num_threads(1)
    disable_progress_bars()
    name, changes = VARIANTS[variant]
    recipe = load_recipe(name, [*changes, f"seed={seed}", "checkpoint.every_steps=100"])
    recipe = replace(recipe, stages=tuple(replace(stage, steps=steps) for stage in recipe.stages))
    out = _folder(work, variant, seed, steps)
    done = pretrain(
        recipe,
        Corpus.open(work / "testbed/corpus"),
        out,
        resume=out.exists(),
        console=Console(quiet=True),
    )
    assert done.model is not None
    return {**losses(out), **scores(work, done.model, out)}


def losses(run: Path) -> dict[str, float]:
    """The last held-out perplexity and loss of a run."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, float] = {}
    for record in records:
        for metric, name in (
            ("valid/mlm/mean/perplexity", "perplexity"),
            ("valid/cooccurrence/mean/loss", "gc"),
        ):
            if metric in record:
                found[name] = record[metric]
    return found


def scores(work: Path, model: Path, out: Path) -> dict[str, float]:
    """Words in the embedding table and sentences at the best layer, chosen on other sentences."""
    from benchmarks.mlm_gc.word_translation import word_translation_scores

    from isoglot.averaging import best_layer
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.evaluation.settings import FeatureConfig

    raw = work / "testbed/raw"
    features = FeatureConfig(limit=300, center=True)
    files = sorted(raw.glob("test/*.tsv"))
    results = evaluate(model, pairs=files, features=features, out=out / "results.json")
    best = best_layer(results.scores)
    assert best is not None, "retrieval has halves"
    accuracy = 100 * best.average
    return {
        **word_translation_scores(model, sorted(raw.glob("dictionaries/*.txt"))),
        "accuracy": accuracy,
    }


def _folder(work: Path, variant: str, seed: int, steps: int) -> Path:
    return work / "runs" / f"{variant.replace(' ', '-').replace(',', '')}-{steps}-seed{seed}"


def table(work: Path, variants: list[str], seeds: int, steps: int) -> str:
    """What is finished, as a Markdown table."""
    names = ("perplexity", "gc", "cosine", "others", "p@1", "accuracy")
    lines = ["| variant | seeds | " + " | ".join(names) + " |", "| --- " * (len(names) + 2) + "|"]
    for variant in variants:
        files = [_folder(work, variant, seed, steps) / "scores.json" for seed in range(seeds)]
        found = [json.loads(file.read_text()) for file in files if file.exists()]
        cells = []
        for name in names:
            values = [run[name] for run in found if name in run]
            spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
            cells.append(f"{fmean(values):.2f}{spread}" if values else "")
        lines.append(f"| {variant} | {len(found)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _job(job: tuple[Path, str, int, int, float]) -> None:
    work, variant, seed, steps, deadline = job
    if time.time() > deadline:
        return
    found = train(work, variant, seed, steps)
    kept = _folder(work, variant, seed, steps) / "scores.json"
    kept.write_text(json.dumps(found))
    print(f"{variant}, seed {seed}: {json.dumps({k: round(v, 3) for k, v in found.items()})}")


def main() -> None:
    """Train what is missing, print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("work", type=Path)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--languages", default="en,de,es,ru")
    parser.add_argument("--minutes", type=float, default=0.0)
    given = parser.parse_args()
    from rich.console import Console

    from isoglot.corpus import Corpus
    from isoglot.demo.testbed_corpus import generated_corpus
    from isoglot.pretraining.config import objectives_of
    from isoglot.recipe import load_recipe

    languages = tuple(given.languages.split(","))
    folder = generated_corpus(
        given.work / "testbed", Console(stderr=True), languages=languages, zipf=True, num_pages=0
    )
    corpus = Corpus.open(folder)
    deadline = time.time() + 60 * (given.minutes or 1e6)
    jobs: list[Any] = []
    for variant in given.variants:
        name, changes = VARIANTS[variant]
        for objective in objectives_of(load_recipe(name, list(changes))).values():
            objective.prepare(corpus)  # runs side by side must not count the same pairs
        jobs += [
            (given.work, variant, seed, given.steps, deadline)
            for seed in range(given.seeds)
            if not (_folder(given.work, variant, seed, given.steps) / "scores.json").exists()
        ]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_job, jobs))
    print(table(given.work, given.variants, given.seeds, given.steps))


if __name__ == "__main__":
    main()
