"""Score the splits of tasks with one model: what is reused, what is computed, what is told.

    split --read, hash--> scores of the same data? --no: SCORERS--> scores --add_scores--> file

A split is scored by the function of its task's kind, and its scores are written when it is done.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isoglot.averaging import delivered_layer
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.evaluation.data import ScoringJob, read_split
from isoglot.evaluation.exported import exported_vectors
from isoglot.evaluation.retrieval import IDENTICAL, is_identical
from isoglot.model_results import (
    add_scores,
    existing_results,
    hash_examples,
    reuse_note,
    scored_data,
)
from isoglot.models import objective_heads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from isoglot.evaluation.probing import ClozePrediction
    from isoglot.evaluation.settings import FeatureConfig
    from isoglot.models.encoder import Encoder
    from isoglot.results import Score
    from isoglot.tasks.base import DataFolders, Task, TaskKind, TaskSplit
    from isoglot.tasks.examples import Fact

    Note = Callable[[str], None]
    OnPrediction = Callable[[str, str, Fact, ClozePrediction], None]

SCORERS: Mapping[TaskKind, str] = {
    "retrieval": "retrieval:score_retrieval",
    "mining": "mining:score_mining",
    "alignment": "word_alignment:score_alignment",
    "lexicon": "word_vectors:score_lexicon",
    "analogy": "word_vectors:score_analogy",
    "similarity": "word_vectors:score_similarity",
    "probe": "probing:score_probe",
    "linking": "linking:score_linking",
}
"""Kind of task -> module of this package and function, imported when a task of the kind is scored.

The function takes a `ScoringJob` and gives the scores of all layers.
"""
PREDICTING = ("probe", "linking")
"""Kinds of tasks whose predictions can be written."""


class SplitScorer:
    """Scores splits with one model, which is loaded for the first split that needs it."""

    def __init__(
        self,
        folder: Path,
        data: DataFolders,
        settings: FeatureConfig,
        out: Path | None,
        on_prediction: OnPrediction | None,
        note: Note | None,
    ) -> None:
        self.results = existing_results(folder, out)
        self._note = note
        self._folder, self._data, self._settings, self._out = folder, data, settings, out
        self._on_prediction = on_prediction
        self._pretokenization = Pretokenizer.load(folder)
        self._model: tuple[Encoder, Any] | None = None
        self._reused: dict[str, list[str]] = {}
        self._changed: dict[str, list[str]] = {}
        self._identical: dict[str, Counter[str]] = {}

    def score(self, task: Task[Any, Any], split: TaskSplit) -> None:
        """Add the scores of a split, unless there are scores of the same data."""
        examples = read_split(task, split, self._pretokenization)
        examples = task.limited(examples, self._settings.limit)
        dev = self._dev_split(task, split)
        of_dev = [] if dev is None else read_split(task, dev, self._pretokenization)
        data = hash_examples(examples, of_dev)
        scenario = self._settings.scenario(task.kind)
        known = scored_data(self.results.scores, task, split.language, scenario)
        is_wanted = self._on_prediction is not None and task.kind in PREDICTING
        if known == {data} and not is_wanted:
            self._reused.setdefault(task.name, []).append(split.language)
            return
        if known - {data}:
            self._changed.setdefault(task.name, []).append(split.language)
        if task.kind == "retrieval":
            number = sum(map(is_identical, examples))
            self._identical.setdefault(task.name, Counter())[split.language] = number
        job = ScoringJob(
            *self._loaded(),
            task,
            split,
            self._settings,
            self._pretokenization,
            exported_vectors(self._folder),
            examples,
            self._note,
            objective_heads.load(self._folder),
        )
        options: dict[str, Any] = {} if dev is None else {"dev": dev}
        if is_wanted and self._on_prediction is not None:
            options["on_prediction"] = partial(self._on_prediction, task.name)
        found = [replace(score, data=data) for score in _split_scores(job, options)]
        self.results = add_scores(self.results, found, self._out)

    def tell(self, task: Task[Any, Any]) -> None:
        """Call the note with what is to be said of a task that is done."""
        for said in (self._reused_in(task), self._identical_in(task)):
            if self._note is not None and said:
                self._note(said)

    def _reused_in(self, task: Task[Any, Any]) -> str:
        """A sentence about the task's scores that were in the file; empty: there were none."""
        of_task = self._reused.get(task.name, []), self._changed.get(task.name, [])
        return "" if self._out is None else reuse_note(self._out, task.name, *of_task)

    def _identical_in(self, task: Task[Any, Any]) -> str:
        """A sentence about pairs with the same text in both languages; empty: there are none."""
        found = self._identical.get(task.name, Counter())
        named = ", ".join(f"{code} {number:,}" for code, number in found.items() if number)
        if not named:
            return ""
        return (
            f"{task.name}: {found.total():,} pairs have the same text in both languages ({named}). "
            f"Any model finds them; the metric '... {IDENTICAL}' leaves them out."
        )

    def _loaded(self) -> tuple[Encoder, Any]:
        self._model = self._model or load_model(self._folder, self._settings, self._note)
        return self._model

    def _dev_split(self, task: Task[Any, Any], split: TaskSplit) -> TaskSplit | None:
        """The split that gives the threshold of mining."""
        if task.kind != "mining" or split.name == "dev":
            return None
        wanted = split.language, "dev"
        splits = task.splits_in(self._data)
        return next((one for one in splits if (one.language, one.name) == wanted), None)


def load_model(folder: Path, settings: FeatureConfig, note: Note | None) -> tuple[Encoder, Any]:
    """The encoder and the tokenizer of a model folder."""
    from isoglot.evaluation.loading import load_for_scoring

    return load_for_scoring(folder, language_embeddings=settings.language_embeddings, note=note)


def pass_on_once(note: Note | None) -> Note | None:
    """A function that passes each sentence on once: texts are encoded for several layers."""
    said: set[str] = set()

    def tell(message: str) -> None:
        if note is not None and message not in said:
            said.add(message)
            note(message)

    return tell if note is not None else None


def _split_scores(job: ScoringJob, options: Mapping[str, Any]) -> list[Score]:
    """The scores of one split at all layers."""
    module, _, function = SCORERS[job.task.kind].partition(":")
    score = getattr(importlib.import_module(f"isoglot.evaluation.{module}"), function)
    return with_compared_outcomes(score(job, **options))


def with_compared_outcomes(scores: Sequence[Score]) -> list[Score]:
    """The scores, with outcomes only at the layer by which models are compared."""
    compared = delivered_layer(score.layer for score in scores if score.outcomes is not None)
    return [s if s.layer == compared else replace(s, outcomes=None) for s in scores]
