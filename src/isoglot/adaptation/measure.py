"""A trial of a planned recipe: a small corpus of the samples, and a few steps on it."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from isoglot.adaptation.findings import Findings
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.knowledge_plan import knowledge_source
from isoglot.adaptation.knowledge_sample import sample_tables
from isoglot.adaptation.resources import Trial
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.pretraining.config import Recipe
    from isoglot.pretraining.estimate import RunEstimate

_TRIAL_SECONDS, _SEARCH_SECONDS = 10.0, 120.0
"""Time for timing steps, and for trying numbers of rows at a time."""
_TRIAL_SHARE, _SEARCH_SHARE = 0.03, 0.05
"""The most that the two may take of the hours."""


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
        from isoglot.pretraining.estimate import estimate_run
        from isoglot.pretraining.micro_rows import DoesNotFitError

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
