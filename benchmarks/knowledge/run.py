"""What XLM-K's tasks teach, on the generated world: Table 4's ablations from one MLM checkpoint.

    python -m benchmarks.knowledge.run WORK [--recipes xlm-k mep ...] [--seeds 0 1 2] [--limit 200]

Makes the world's corpus and the shared checkpoint in WORK if they are not there, then trains every
recipe of recipes/ with every seed for the same number of tokens and scores it (`score.py`). A cell
that has finished is skipped, so the study can be run in pieces: with --limit cells stop after so
many seconds, and go on exactly there the next time. Ends with a table of all cells that are there,
mean ± standard deviation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoglot.pretraining.run import Outcome

RECIPES = Path(__file__).parent / "recipes"
CONTROL = "mlm"
ALL = (CONTROL, "xlm-k", "mep", "oe", "no-tasks", "mep-same-language", "oe-classify")
LANGUAGES = ("en", "de", "es")
WORLD: dict[str, Any] = {"num_concepts": 40, "max_entities": 30}
SIZES: dict[str, Any] = {
    "num_sentences": 6000,
    "num_pairs": 1000,
    "num_pages": 4000,
    "vocab_size": 300,
}
"""Few pieces, so that the names of one language share some with another's, as in XLM-R."""


def corpus_in(work: Path) -> Path:
    from rich.console import Console

    from isoglot.demo.testbed_corpus import generated_corpus

    return generated_corpus(
        work,
        Console(stderr=True),
        languages=LANGUAGES,
        **SIZES,
        **WORLD,
    )


def train(
    work: Path, name: str, seed: int, start: Path | None, steps: int | None, deadline: float
) -> tuple[Path, Outcome]:
    """Train one cell until it has finished or its time is over; gives its folder and outcome."""
    import torch
    from rich.console import Console

    from isoglot.corpus import Corpus
    from isoglot.pretraining.run import pretrain
    from isoglot.recipe import dump, load_recipe

    torch.set_num_threads(1)
    told = [f"seed={seed}", *([] if steps is None else [f"stages.0.steps={steps}"])]
    recipe = load_recipe(str(RECIPES / f"{name}.yaml"), told)
    if start is not None:
        model = replace(
            recipe.model,
            init_from=str(start),
            size=None,
            num_layers=None,
            hidden_size=None,
            num_heads=None,
        )
        recipe = replace(recipe, model=model)
    run = work / "runs" / f"{name}-{seed}"

    asked = False

    def watch(_: object) -> None:
        nonlocal asked
        if time.time() > deadline and not asked:  # asked twice, a run goes at once
            asked = True
            os.kill(os.getpid(), signal.SIGTERM)  # it saves and stops

    done = pretrain(
        recipe,
        Corpus.open(work / "corpus"),
        run,
        resume=run.exists(),
        name=recipe.name,
        recipe_text=dump(recipe),
        console=Console(quiet=True),
        on_step=watch,
    )
    return run, done


def cell(
    work: Path, name: str, seed: int, steps: int | None = None, deadline: float = float("inf")
) -> str:
    """Train and score one cell; gives a line about it."""
    from benchmarks.knowledge.score import facts, links
    from transformers.utils import logging

    from isoglot.corpus import Corpus
    from isoglot.evaluation.loading import load_for_scoring
    from isoglot.testbed import World

    logging.disable_progress_bar()
    start = None if name == "checkpoint" else work / "runs/checkpoint-0/model"
    run, done = train(work, name, seed, start, steps, deadline)
    if not done.finished:
        return f"{name}-{seed:<3} stopped after {done.total_steps} steps"
    (checkpoint,) = sorted((run / "checkpoints").glob("step-*"))[-1:]
    encoder, tokenizer = load_for_scoring(run / "model")
    corpus, world = Corpus.open(work / "corpus"), World(**WORLD)
    by_language = {code: facts(encoder, tokenizer, world, code) for code in LANGUAGES}
    scores = {
        f"facts {kind}": mean(found[kind] for found in by_language.values())
        for kind in ("open", "typed")
    }
    scores |= {f"links {how}": v for how, v in links(encoder, corpus, checkpoint).items()}
    found = {"recipe": name, "seed": seed, "tokens": done.tokens, "scores": scores}
    file = _result(work, name, seed)
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found), encoding="utf-8")
    told = "  ".join(f"{test} {value:5.1f}" for test, value in scores.items())
    return f"{name}-{seed:<3} {done.tokens / 1e6:.2f}M tokens  {told}"


def _result(work: Path, name: str, seed: int) -> Path:
    return work / "results" / f"{name}-{seed}.json"


def table(work: Path) -> str:
    """A line a recipe: mean ± standard deviation over its seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in ("checkpoint", *ALL):
        for file in sorted((work / "results").glob(f"{name}-[0-9]*.json")):
            found.setdefault(name, []).append(json.loads(file.read_text(encoding="utf-8")))
    tests = ("facts open", "facts typed", "links states", "links fitted", "links heads")
    lines = [f"| recipe | seeds | tokens | {' | '.join(tests)} |", "|---" * (3 + len(tests)) + "|"]
    for name, cells in found.items():
        row = [name, str(len(cells)), f"{mean(c['tokens'] for c in cells) / 1e6:.2f}M"]
        row += [_spread([c["scores"][t] for c in cells if t in c["scores"]]) for t in tests]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    if not values:
        return "–"
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the study of XLM-K's tasks.")
    parser.add_argument("work", type=Path)
    parser.add_argument("--recipes", nargs="+", default=list(ALL))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="of every continuation, instead of its own")
    parser.add_argument("--parallel", type=int, default=2, help="cells at a time")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which cells stop")
    given = parser.parse_args()
    deadline = time.time() + given.limit
    corpus_in(given.work)
    if not _result(given.work, "checkpoint", 0).is_file():
        print(cell(given.work, "checkpoint", 0, deadline=deadline), flush=True)
    left = [
        (given.work, name, seed, given.steps, deadline)
        for seed in given.seeds
        for name in given.recipes
        if not _result(given.work, name, seed).is_file()
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.parallel, context) as pool:
        for line in pool.map(_in_time, left):
            if line is not None:
                print(line, flush=True)
    print(table(given.work))
    missing = sum(not _result(work, name, seed).is_file() for work, name, seed, *_ in left)
    if missing:
        print(f"{missing} cells are left: run it again")


def _in_time(one: tuple[Path, str, int, int | None, float]) -> str | None:
    return cell(*one) if time.time() < one[-1] else None


if __name__ == "__main__":
    main()
