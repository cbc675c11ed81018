"""Held-out mentions and facts, scored before and after: which description is the right one?

    corpus --held-out part--> OUT/linking --score_linking_files--> LinkingScores (before, after)

Queries are the names of held-out pages, masked, and held-out facts; candidates are descriptions in
another language (`isoglot.tasks.linking`). Both models are scored by the cosine of their centered
states at every layer; the trained heads of the objectives besides, where a model has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.adaptation.comparison import (
    ENTITIES,
    ENTITIES_HEADS,
    OBJECTS,
    OBJECTS_HEADS,
    Choice,
    Comparison,
    compared,
)
from isoglot.adaptation.knowledge_plan import CANDIDATES, MAX_QUERIES
from isoglot.atomic import replace_folder
from isoglot.corpus.knowledge.heldout_files import nearest_pairs, write_heldout_files
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import CorpusError
from isoglot.evaluation.data import ScoringJob, splits_to_score
from isoglot.evaluation.linking import OBJECTIVES, score_linking
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.settings import FeatureConfig
from isoglot.intervals import means_of, unpack_rows
from isoglot.languages import language_sides
from isoglot.models import objective_heads
from isoglot.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from isoglot.corpus import Corpus
    from isoglot.types import FloatArray

_MIN_QUERIES = 20
"""Fewer queries of a task and a language are not scored: a layer is chosen on half of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingScores:
    """What one model finds, by query."""

    layers: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Task -> languages (en-sw) -> for each layer the packed outcomes."""
    heads: dict[str, dict[str, str]] = field(default_factory=dict)
    """The same of the trained heads; empty where the model has none."""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"layers": self.layers, "heads": self.heads}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> LinkingScores:
        """From `to_json`."""
        return cls(layers=dict(found["layers"]), heads=dict(found["heads"]))

    def best_layer(self, task: str) -> int:
        """The layer that finds most, on every other query; the mean over languages."""
        by_layer = zip(*self.layers[task].values(), strict=True)
        return int(np.argmax([fmean(map(_even_accuracy, found)) for found in by_layer]))

    def outcomes(self, task: str, where: str, layer: int | None) -> FloatArray:
        """Of the other half of the queries, at a layer; none: with the heads."""
        packed = self.heads[task][where] if layer is None else self.layers[task][where][layer]
        return unpack_rows(packed)[0, 1::2]


def _even_accuracy(packed: str) -> float:
    return float(unpack_rows(packed)[0, ::2].mean())


METRICS = {
    "entity-linking": (ENTITIES, ENTITIES_HEADS),
    "object-entailment": (OBJECTS, OBJECTS_HEADS),
}
"""Task -> its metrics: of a layer's states, and of the trained heads."""


def compare_linking(
    before: LinkingScores, after: LinkingScores
) -> tuple[list[Comparison], list[Choice]]:
    """Both models by the states of a layer; and the heads after, with those before if it had any.

    A layer is chosen on every other query, and scored on those between.
    """
    found, choices = [], []
    for task in before.layers:
        rows, choice = _compare_task(task, before, after)
        found += rows
        choices.append(choice)
    return found, choices


def _compare_task(
    task: str, before: LinkingScores, after: LinkingScores
) -> tuple[list[Comparison], Choice]:
    states, heads = METRICS[task]
    layers = before.best_layer(task), after.best_layer(task)
    found = []
    for name in before.layers[task]:
        where = "→".join(language_sides(name))
        old, new = before.outcomes(task, name, layers[0]), after.outcomes(task, name, layers[1])
        found.append(compared(states, where, means_of(old), means_of(new)))
        if task in after.heads:
            old = before.outcomes(task, name, None) if task in before.heads else old
            new = after.outcomes(task, name, None)
            found.append(compared(heads, where, means_of(old), means_of(new)))
    choice = f"layer {layers[0]} before, {layers[1]} after"
    if task in after.heads:
        had = "those of the encoder before" if task in before.heads else "the states before"
        choice += f"; heads: those that were trained after, {had}"
    number = sum(len(before.outcomes(task, name, 0)) for name in before.layers[task])
    data = f"the other half of the held-out queries ({number:,} are scored)"
    return found, Choice(what=f"layer of {states}", choice=choice, data=data)


def write_linking(corpus: Corpus, folder: Path) -> dict[str, dict[str, int]]:
    """Write the held-out mentions and facts of a corpus; task -> languages -> queries.

    Each language meets the one other that describes most of its entities. There are none where
    nothing is held out.
    """
    with replace_folder(folder) as new:
        try:
            return write_heldout_files(
                corpus,
                new,
                max_examples=MAX_QUERIES,
                candidates=CANDIDATES,
                pairs=nearest_pairs(corpus.knowledge),
            )
        except CorpusError:
            return {}


def score_linking_files(
    model: Path, folder: Path, *, note: Callable[[str], None] | None = None
) -> LinkingScores:
    """Score a model folder on the files of `write_linking`, those with few queries left out."""
    encoder, tokenizer = load_for_scoring(model, note=note)
    heads = objective_heads.load(model)
    split_words = Pretokenizer.load(model)
    found = LinkingScores()
    for name, objective in OBJECTIVES.items():
        task = find_task(name)
        if not task.splits_in(folder):
            continue
        for split in splits_to_score(task, folder, None):
            job = ScoringJob(
                encoder,
                tokenizer,
                task,
                split,
                FeatureConfig(),
                pretokenization=split_words,
                note=note,
                heads=heads,
            )
            scores = [one for one in score_linking(job) if one.metric == task.metrics[0].name]
            packed = [(one.layer, one.outcomes) for one in scores if one.outcomes]
            number = unpack_rows(packed[0][1]).shape[1] if packed else 0
            if number < _MIN_QUERIES:
                if note is not None:
                    note(
                        f"{name} {split.language}: not scored, as {number} held-out queries are "
                        f"fewer than {_MIN_QUERIES}. Tables of a graph hold out more with isoglot "
                        "knowledge graph --set heldout_share=0.2."
                    )
                continue
            layers = [outcomes for layer, outcomes in packed if layer is not None]
            found.layers.setdefault(name, {})[split.language] = layers
            if objective in heads:
                found.heads.setdefault(name, {})[split.language] = packed[-1][1]
    return found


def score_both(
    corpus: Corpus,
    models: tuple[Path, Path],
    folder: Path,
    *,
    advance: Callable[[float], None],
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Write the files of a corpus and score the models before and after on them, as JSON.

    Empty where nothing is held out. `advance` hears of the share that is done.
    """
    if not write_linking(corpus, folder):
        note("the knowledge holds out no mention and no fact: neither is scored")
        return {}
    found = []
    for number, model in enumerate(models):
        told = note if number else None  # the same of both
        found.append(score_linking_files(model, folder, note=told).to_json())
        advance((number + 1) / 2)
    return {"before": found[0], "after": found[1]}
