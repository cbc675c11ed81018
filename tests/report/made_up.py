"""Folders as evaluations and runs leave them, of any size, with made-up numbers."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from isoglot.exhibits import Exhibits, Grid, Space
from isoglot.results import Results, Score

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = (
    "af ar bg bn cs de el en es et eu fa fi fr he hi hu id it ja jv ka kk ko lt ml mr ms my nl "
    "pl pt ro ru sw ta te th tr zh"
).split()
TASKS = (
    "xnli paws-x amazon-reviews conll-ner wikiann masakhaner ud-pos squad mlqa xquad tydiqa xcopa "
    "tatoeba word-alignment lexicon"
).split()
METRICS = {"squad": ["F1", "EM"], "mlqa": ["F1", "EM"], "word-alignment": ["AER"]}
LAYERS = 13


def write_model(
    folder: Path, seed: int, *, languages: list[str], tasks: list[str], seeds: int, steps: int
) -> Path:
    """A run with results, metrics and exhibits."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    scores = tuple(
        score for task in tasks for score in _scores(task, rng, languages=languages, seeds=seeds)
    )
    Results(
        model=f"runs/{folder.name}/model",
        fingerprint=f"{seed:064x}",
        scores=scores,
    ).write(folder / "results.json")
    _exhibits(rng, languages, mixed=seed % 2 == 0).write(folder / "exhibits.json")
    with (folder / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for record in _records(rng, steps):
            file.write(json.dumps(record) + "\n")
    (folder / "recipe.yaml").write_text("batch: {rows: 64, row_length: 256}\n", encoding="utf-8")
    return folder


def _scores(task, rng, *, languages, seeds):
    layered = task in {"tatoeba", "word-alignment"}
    strength = rng.uniform(0.55, 0.85)
    for metric in METRICS.get(task, ["accuracy"]):
        for language in languages:
            if layered and language == "en":
                continue
            level = strength + (0.08 if language == "en" else rng.normal(-0.05, 0.07))
            for seed in [None] if layered else range(seeds):
                for layer in range(LAYERS) if layered else [None]:
                    value = level + rng.normal(0, 0.01)
                    if layer is not None:
                        value *= math.sin(math.pi * (layer + 2) / (LAYERS + 4))
                    yield Score(
                        task=task,
                        version=1,
                        language=f"en-{language}" if layered else language,
                        metric=metric,
                        value=float(np.clip(1 - value if metric == "AER" else value, 0, 1)),
                        count=1000,
                        higher_is_better=metric != "AER",
                        layer=layer,
                        seed=seed,
                        scenario=None if layered else "zero-shot from en, xtreme",
                        selection=None if layered else "source-dev",
                        commit="06572bf" * 5,
                    )


def _exhibits(rng, languages, *, mixed: bool) -> Exhibits:
    centres = rng.normal(0, 0.3 if mixed else 3, (len(languages), 2))
    points = {
        language: tuple((float(x), float(y)) for x, y in rng.normal(centre, 1, (100, 2)).round(2))
        for language, centre in zip(languages, centres, strict=True)
    }
    first = "The old house stands by the river .".split()
    second = "Das alte Haus steht am Fluss .".split()
    cosines = rng.uniform(0.2, 0.5, (len(first), len(second)))
    for a, b in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (7, 6)]:
        cosines[a, b] += 0.45
    grid = Grid(
        language="en-de",
        layer=8,
        first=tuple(first),
        second=tuple(second),
        cosines=tuple(tuple(round(float(c), 3) for c in row) for row in cosines),
    )
    method = "PCA to 50 dimensions, then t-SNE"
    return Exhibits(
        fingerprint="0", space=Space(layer=8, method=method, points=points), grids=(grid, grid)
    )


def _records(rng, steps):
    for step in range(1, steps + 1):
        loss = 2 + 7 / math.sqrt(step) + rng.normal(0, 0.05)
        tokens = int(rng.integers(15_800, 16_384))
        yield {
            "step": step,
            "mlm/loss": loss,
            "tlm/loss": loss - 0.5,
            "learning_rate": 1e-4 * (1 - step / (steps + 1)),
            "gradient_norm": float(rng.uniform(0.5, 1.5)),
            "tokens": tokens,
            "total_tokens": 16_000 * step,
            "tokens_per_second": float(rng.uniform(9e4, 1e5)),
        }
        if step % (steps // 10) == 0:
            yield {"step": step, "valid/mlm/mean perplexity": math.exp(loss)}
