"""The time, the memory and the disk that a plan takes: measured in a trial, or computed from it.

    recipe --SampleTrial--> Trial --seconds_without_training, disk_bytes--> time and disk of a plan

A trial prepares a small corpus of the samples and trains on it for a few steps.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from isoglot.adaptation.choices import Decision
from isoglot.adaptation.display import STEPS
from isoglot.adaptation.findings import Findings
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.knowledge_plan import knowledge_source, sample_tables, scored_tokens
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import IsoglotError
from isoglot.pretraining.estimates.costs import disk_of_run, seconds_of_run
from isoglot.progress import duration

if TYPE_CHECKING:
    from isoglot.adaptation.findings import DataFacts
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.estimates.costs import RunCosts
    from isoglot.pretraining.estimates.estimate import RunEstimate

_TRIAL_SECONDS, _SEARCH_SECONDS = 10.0, 120.0
"""Time for timing steps, and for trying numbers of rows at a time."""
_TRIAL_SHARE, _SEARCH_SHARE = 0.03, 0.05
"""The most that the two may take of the hours."""
_FORWARD = 3
"""A training step takes as long as this many forward passes over its tokens."""
_TOKEN_BYTES = 5
"""Bytes of a token in a corpus, with its indices."""


class Trial(NamedTuple):
    """What was measured by preparing a small corpus and training on it for a few steps."""

    rows: int
    """Rows of a step: fewer than planned where contrast needs all at a time, and they do not fit
    the memory."""
    micro_rows: int
    """Rows at a time."""
    reason: str
    """Why so many."""
    costs: RunCosts
    prepare_seconds: float
    """Time to prepare the small corpus, most of which does not depend on its size."""

    @property
    def tokens_per_second(self) -> float:
        """Speed of training."""
        stage = self.costs.stages[0]
        return stage.step_tokens / stage.step_seconds

    def scoring_seconds(self, models: int, tokens: float) -> float:
        """Time to read so many models and to encode so many tokens with them, all together."""
        return models * self.costs.build_seconds + tokens / (_FORWARD * self.tokens_per_second)


@dataclass(frozen=True, slots=True)
class SampleTrial:
    """Measures from the encoder as it is: new words hardly change its speed."""

    findings: Findings
    folder: AdaptFolder
    hours: float | None = None
    """Time for everything, if it is limited."""
    console: Console | None = None
    """Shows what is tried."""

    def __call__(self, recipe: Recipe) -> Trial:
        """Prepare a corpus of the samples, and train on it for a few steps."""
        from isoglot.corpus import Corpus
        from isoglot.corpus.pipeline.run import prepare

        encoder = self.findings.encoder.folder
        recipe = replace(recipe, model=replace(recipe.model, init_from=encoder))
        with tempfile.TemporaryDirectory() as scratch:
            corpus = Path(scratch) / "corpus"
            began = time.monotonic()
            settings = self._settings(encoder, Path(scratch) / "tables")
            prepare(settings, corpus, base=self.folder.sample)
            seconds = time.monotonic() - began
            estimate = self._estimate(recipe, Corpus.open(corpus))
        rows, reason = estimate.config.batch.rows, estimate.reason
        if rows < recipe.batch.rows:
            reason = f"{recipe.batch.rows} do not fit the memory; {reason}"
        return Trial(rows, estimate.micro_rows, reason, estimate.costs, seconds)

    def _settings(self, encoder: str, tables: Path) -> PrepareConfig:
        """Sources of the samples, of the kinds that the plan has; sampled knowledge in `tables`."""
        text: dict[str, tuple[str, ...]] = {c: (f"{c}.txt",) for c in self.findings.text}
        pairs: dict[str, tuple[str, ...]] = {c: (f"{c}.tsv",) for c in self.findings.pairs}
        sources = {"text": SourceConfig(kind="text", files=text)}
        if pairs:
            sources["pairs"] = SourceConfig(kind="pairs", format="tsv", files=pairs)
        knowledge = None
        if self.findings.knowledge is not None:
            sampled = sample_tables(self.findings.knowledge, tables)
            knowledge = replace(knowledge_source(self.findings.knowledge), tables=str(sampled))
        return PrepareConfig(
            sources=sources,
            tokenizer=TokenizerConfig(folder=encoder),
            heldout_share=0.05,
            knowledge=knowledge,
        )

    def _estimate(self, recipe: Recipe, corpus: Corpus) -> RunEstimate:
        """The estimate with all rows of a step, or with as many as fit the memory at a time.

        Raises:
            DoesNotFitError: not even one row fits.
        """
        from isoglot.pretraining.estimates.estimate import estimate_run
        from isoglot.pretraining.estimates.micro_rows import DoesNotFitError

        limit = math.inf if self.hours is None else 3600 * self.hours
        try:
            return estimate_run(
                recipe,
                corpus,
                self.console,
                trial_seconds=min(_TRIAL_SECONDS, _TRIAL_SHARE * limit),
                search_seconds=min(_SEARCH_SECONDS, _SEARCH_SHARE * limit),
            )
        except DoesNotFitError as error:
            if not 0 < error.largest < recipe.batch.rows:
                raise
            fewer = replace(recipe.batch, rows=error.largest)
            return self._estimate(replace(recipe, batch=fewer), corpus)


def seconds_without_training(
    findings: Findings, trial: Trial, *, grows: bool, workers: int, heldout_share: float
) -> dict[str, float]:
    """Time of each step but training.

    Preparing reads the data as looking did, and tokenizes them. For the scores before and after, a
    held-out line is encoded as often as its longest hidden word has tokens, about twice the mean;
    after training, held-out pairs are encoded once more, by the sentence-transformers model.

    Args:
        findings: what `look` found.
        trial: what was measured.
        grows: whether words are added to the vocabulary.
        workers: processes that prepare.
        heldout_share: share of the pairs of the corpus that are development pairs.
    """
    from isoglot.models.transplant.output_bias import FITTED_TOKENS

    costs = trial.costs
    pairs = sum(one.heldout * _line_tokens(one) for one in findings.pairs.values())
    tokens = pairs
    for code, data in findings.text.items():
        passes = 2 * findings.languages[code].tokens_per_word
        tokens += passes * data.heldout * _line_tokens(data)
    scores = trial.scoring_seconds(1, tokens)
    vectors = trial.scoring_seconds(1, pairs) if findings.pairs else 0.0
    fitting = trial.scoring_seconds(0, FITTED_TOKENS)
    growing = {"grow": 2 * costs.build_seconds + fitting + costs.export_seconds} if grows else {}
    reading = (findings.read_seconds + findings.tokenize_seconds) / workers
    linking = {}
    if findings.knowledge is not None:
        encoded = 2 * scored_tokens(findings.knowledge)  # by two models
        linking = {"link": trial.scoring_seconds(2, encoded)}
    return {
        "before": scores,
        **growing,
        "prepare": trial.prepare_seconds + reading,
        "choose": _choose_seconds(findings, trial, heldout_share),
        "after": scores + vectors,
        **linking,
        "speed": _speed_seconds(findings, trial),
    }


def _choose_seconds(findings: Findings, trial: Trial, heldout_share: float) -> float:
    """Both models on the development pairs; then the poolings, and the folder for sentences."""
    from isoglot.adaptation.scoring import MAX_PAIRS

    tokens = sum(
        min(MAX_PAIRS, heldout_share * one.lines) * _line_tokens(one)
        for one in findings.pairs.values()
    )
    models = 3 if findings.pairs else 1  # without pairs only the export reads a model
    return trial.scoring_seconds(models, 3 * tokens) + trial.costs.export_seconds


def _speed_seconds(findings: Findings, trial: Trial) -> float:
    """Both models encode the same held-out sentences several times."""
    from isoglot.adaptation.scoring import TIMED_SENTENCES, TIMINGS

    lines = sum(one.heldout for one in findings.text.values())
    tokens = sum(one.heldout * _line_tokens(one) for one in findings.text.values())
    timed = min(TIMED_SENTENCES, lines) * tokens / max(1, lines)
    return trial.scoring_seconds(2, 2 * (TIMINGS + 1) * timed)


def _line_tokens(data: DataFacts) -> float:
    """Mean tokens of a line, or of both sides of a pair."""
    return data.tokens / max(1, data.lines)


def train_seconds(recipe: Recipe, trial: Trial) -> float:
    """Time of training, with validations, checkpoints and the export."""
    return seconds_of_run(recipe, trial.costs, (num_steps(recipe),))


def disk_bytes(findings: Findings, recipe: Recipe, trial: Trial, *, grows: bool) -> int:
    """The corpus, the run, and two or three folders of models."""
    tokens = sum(one.tokens for one in (*findings.text.values(), *findings.pairs.values()))
    if findings.knowledge is not None:  # the store, and its joins while it is written
        tokens += sum(one.characters for one in findings.knowledge.languages.values())
    models = (3 if grows else 2) * trial.costs.export_bytes
    return _TOKEN_BYTES * tokens + disk_of_run(recipe, trial.costs, (num_steps(recipe),)) + models


def check_disk(needed: int, free: int, place: Path) -> None:
    """Refuse to begin what the disk cannot hold."""
    if needed > free:
        raise IsoglotError(
            f"{place}: the corpus, checkpoints and models need {needed / 1e9:,.1f} GB, and "
            f"{free / 1e9:,.1f} GB are free there. Free disk space or choose another --out."
        )


def time_decision(steps: dict[str, float], disk: int, findings: Findings) -> Decision:
    """How long everything takes."""
    order = [name for name in STEPS if name in steps]
    parts = ", ".join(f"{STEPS[name]} {duration(steps[name])}" for name in order)
    machine = findings.machine
    where = machine.gpus[0] if machine.gpus else f"{machine.cores} CPU cores"
    return Decision(
        topic="time and disk",
        choice=f"{duration(sum(steps.values()))}, {disk / 1e9:,.2f} GB",
        reason=f"{parts}, measured on {where}; {machine.disk_free_bytes / 1e9:,.0f} GB are free",
    )


def num_steps(recipe: Recipe) -> int:
    """The training steps of a planned recipe."""
    steps = recipe.stages[0].steps
    assert steps is not None, "a plan has a number of steps"
    return steps
