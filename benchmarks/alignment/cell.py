"""One cell of the study: a recipe with a seed, trained from the shared checkpoint, then scored.

    python -m benchmarks.alignment.cell WORK RECIPE SEED [--start FOLDER] [--set key=value ...]

Reads WORK/corpus and WORK/test; writes WORK/runs/RECIPE-SEED and, last of all,
WORK/results/RECIPE-SEED.json. RECIPE is a name in recipes/ or a path to a .yaml file.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console

from isoglot.atomic import write_json
from isoglot.corpus import Corpus
from isoglot.evaluation.embed import embed
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.retrieval import retrieval_accuracy
from isoglot.model_results import fingerprint
from isoglot.pretraining.run import pretrain
from isoglot.recipe import dump, load_recipe
from isoglot.results import Score
from isoglot.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.pretraining.train_step import StepResult

RECIPES = Path(__file__).parent / "recipes"
WAYS = ("", "centered", "first token")
"""How sentences are compared: by the mean of their states, that less the mean of all sentences of
the language, or by the state of the first token, which contrast trains."""
WARM_UP = 20
"""First steps that the measured speed leaves out."""


def train(
    work: Path,
    recipe_name: str,
    seed: int,
    start: Path | None,
    settings: Sequence[str],
    *,
    corpus: Path | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Train a cell; gives the folder of its model and what is worth knowing of the training."""
    file = RECIPES / f"{recipe_name}.yaml" if "." not in recipe_name else Path(recipe_name)
    recipe = load_recipe(str(file), [f"seed={seed}", *settings])
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
    steps: list[StepResult] = []
    clock: list[float] = [time.perf_counter()]

    def note(step: StepResult) -> None:
        steps.append(step)
        clock.append(time.perf_counter())

    folder = work / "runs" / f"{Path(recipe_name).stem}-{seed}"
    done = pretrain(
        recipe,
        Corpus.open(corpus or work / "corpus"),
        folder,
        resume=folder.exists(),
        name=recipe.name,
        recipe_text=dump(recipe),
        console=Console(stderr=True),
        on_step=note,
    )
    if done.model is None:
        raise SystemExit(f"{folder}: stopped at step {done.total_steps}; run it again to go on.")
    return done.model, {
        "steps": done.total_steps,
        "tokens": done.tokens,
        "train_seconds": time.perf_counter() - clock[0],
        "tokens_per_second": _speed(steps, clock),
        "losses": steps[-1].losses if steps else {},
    }


def _speed(steps: list[StepResult], clock: list[float]) -> float:
    """Tokens a second, waiting for data included: clock[n] is when the n-th step had ended."""
    # compilation falls into the first steps, validation and the checkpoint into the last
    first, last = (WARM_UP, len(steps) - 1) if len(steps) > WARM_UP + 1 else (0, len(steps))
    tokens = sum(step.num_tokens for step in steps[first:last])
    return tokens / max(clock[last] - clock[first], 1e-9)


def score(model: Path, work: Path, ways: Sequence[str] = WAYS) -> Iterator[tuple[str, Score]]:
    """(test, score) of every language pair, layer and direction, in each of the ways.

    A side that several pairs share (NTREX's English) is embedded once.
    """
    encoder, tokenizer = load_for_scoring(model)
    known: dict[tuple[bool, tuple[str, ...]], torch.Tensor] = {}
    for file in sorted((work / "test").glob("*/*.tsv")):
        columns = zip(*(row.split("\t") for row in _rows(file)), strict=True)
        sides = [tuple(column) for column in columns]
        for way in ways:
            first = way == "first token"
            for side in sides:
                if (first, side) not in known:
                    known[first, side] = embed(encoder, tokenizer, side, first_token=first)
            states = [known[first, side] for side in sides]
            if way == "centered":
                states = [state - state.mean(dim=1, keepdim=True) for state in states]
            for found in _accuracies(states, sides, file.stem, way):
                yield file.parent.name, found


def _accuracies(
    states: list[torch.Tensor], sides: list[tuple[str, ...]], pair: str, way: str
) -> Iterator[Score]:
    names, task = pair.split("-"), find_task("retrieval")
    for layer in range(len(states[0])):
        for here, there in ((0, 1), (1, 0)):
            value = retrieval_accuracy(states[here][layer], states[there][layer], sides[there])
            yield Score(
                task=task.name,
                version=task.version,
                language=pair,
                metric=f"{way} accuracy@1 {names[here]}→{names[there]}".strip(),
                value=value,
                count=len(sides[0]),
                layer=layer,
            )


def _rows(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def means(scores: list[dict[str, Any]]) -> dict[str, float]:
    """Test -> mean over languages and directions at its best layer, mean-pooled, in percent."""
    best = {}
    for test in dict.fromkeys(score["test"] for score in scores):
        by_layer: dict[int, list[float]] = {}
        for found in scores:
            if found["test"] == test and found["metric"].startswith("accuracy"):
                by_layer.setdefault(found["layer"], []).append(found["value"])
        best[test] = 100 * max(map(mean, by_layer.values()))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and score one cell of the study.")
    parser.add_argument("work", type=Path)
    parser.add_argument("recipe")
    parser.add_argument("seed", type=int)
    parser.add_argument("--start", type=Path, help="model folder to start from")
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--set", action="append", default=[], metavar="key=value", dest="settings")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    model, facts = train(given.work, given.recipe, given.seed, given.start, given.settings)
    began = time.perf_counter()
    scores = [{"test": test, **asdict(found)} for test, found in score(model, given.work)]
    facts["score_seconds"] = time.perf_counter() - began
    name = Path(given.recipe).stem
    result = {"recipe": name, "seed": given.seed, "model": str(model), **facts}
    result |= {"fingerprint": fingerprint(model), "means": means(scores), "scores": scores}
    file = given.work / "results" / f"{name}-{given.seed}.json"
    write_json(file, result)


if __name__ == "__main__":
    main()
