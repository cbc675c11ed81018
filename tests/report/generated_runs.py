"""Folders as evaluations and runs leave them, of any size, with made-up numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from isoglot.results import Results, Score
from isoglot.tasks import FINE_TUNED_KINDS, find_task
from isoglot.tasks.base import Metric
from isoglot.tasks.multilingual_qa import Mlqa
from isoglot.visualizations import FILE, SentenceMap, SimilarityGrid, Visualizations

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = (
    "af ar bg bn cs de el en es et eu fa fi fr he hi hu id it ja jv ka kk ko lt ml mr my nl pl pt "
    "ro ru sw ta te th tr vi zh"
).split()
TASKS = (
    "xnli paws-x cls conll wikiann masakhaner ud-pos squad-v2 mlqa xquad tydiqa xcopa tatoeba "
    "alignment xling"
).split()
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
    exhibits = _exhibits(rng, languages, mixed=seed % 2 == 0)
    replace(exhibits, fingerprint=f"{seed:064x}").write(folder / FILE)
    with (folder / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for record in _records(rng, steps):
            file.write(json.dumps(record) + "\n")
    (folder / "recipe.yaml").write_text("batch: {rows: 64, row_length: 256}\n", encoding="utf-8")
    return folder


def _scores(name, rng, *, languages, seeds):
    """Scores under the names that fine-tuning and feature reading give them."""
    task = find_task(name)
    strength = rng.uniform(0.55, 0.85)
    if task.kind in FINE_TUNED_KINDS:
        for code in [*languages, *(_crossed(languages) if name == "mlqa" else [])]:
            level = _level(rng, strength, code)
            for metric in task.metrics:
                for seed in range(seeds):
                    yield replace(
                        _score(task, code, metric, level + rng.normal(0, 0.01)),
                        seed=seed,
                        scenario="zero-shot from en, xtreme",
                        selection="source-dev",
                    )
        return
    for code in languages:
        if code == "en":
            continue
        level = _level(rng, strength, code)
        for metric in [*task.metrics, *_beside(task, code)]:
            in_table = metric.name.endswith(" table")
            for layer in [None] if in_table else range(LAYERS):
                height = 0.5 if layer is None else math.sin(math.pi * (layer + 2) / (LAYERS + 4))
                value = (level + rng.normal(0, 0.01)) * height
                yield replace(_score(task, f"en-{code}", metric, value), layer=layer)


def _level(rng, strength, code):
    return strength + (0.08 if code == "en" else rng.normal(-0.05, 0.07))


def _crossed(languages):
    """MLQA's pairs of a question's language and its paragraph's (G-XLT)."""
    return ["-".join(p) for p in permutations(Mlqa.languages.split(), 2) if set(p) <= {*languages}]


def _beside(task, code):
    """Metrics that an evaluation adds to the task's own."""
    if task.kind == "retrieval":
        ways = (f"en→{code}", f"{code}→en")
        return [Metric(name=f"{metric.name} {way}") for metric in task.metrics for way in ways]
    if task.kind == "lexicon":
        own = [metric.name for metric in task.metrics]
        more = [*(f"{name} csls" for name in own), "cosine"]
        return [Metric(name=name) for name in [*more, *(f"{n} table" for n in [*own, *more])]]
    return []


def _score(task, language, metric, value):
    return Score(
        task=task.name,
        version=task.version,
        language=language,
        metric=metric.name,
        value=float(np.clip(value if metric.higher_is_better else 1 - value, 0, 1)),
        count=1000 + crc32(f"{task.name} {language}".encode()) % 9000,
        higher_is_better=metric.higher_is_better,
        commit="06572bf" * 5,
    )


def _exhibits(rng, languages, *, mixed: bool) -> Visualizations:
    centers = rng.normal(0, 0.3 if mixed else 3, (len(languages), 2))
    points = {
        language: tuple((float(x), float(y)) for x, y in rng.normal(center, 1, (100, 2)).round(2))
        for language, center in zip(languages, centers, strict=True)
    }
    first = "The old house stands by the river .".split()
    second = "Das alte Haus steht am Fluss .".split()
    cosines = rng.uniform(0.2, 0.5, (len(first), len(second)))
    for a, b in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (7, 6)]:
        cosines[a, b] += 0.45
    grid = SimilarityGrid(
        language="en-de",
        layer=8,
        first=tuple(first),
        second=tuple(second),
        cosines=tuple(tuple(round(float(c), 3) for c in row) for row in cosines),
    )
    method = "PCA to 50 dimensions, then t-SNE"
    return Visualizations(
        fingerprint="0",
        sentence_map=SentenceMap(layer=8, method=method, points=points),
        grids=(grid, grid),
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
            yield {"step": step, "valid/mlm/mean/perplexity": math.exp(loss)}
