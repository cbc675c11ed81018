"""Trials in the process of a test: quicker than one of their own, and open to monkeypatching."""

from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator
from rich.console import Console
from typing_extensions import override

from isoglot.corpus import Corpus
from isoglot.objectives.base import Objective
from isoglot.pretraining.config import PretrainConfig, objectives_of
from isoglot.pretraining.estimates.measuring import RunMeasurer, TimeBudget
from isoglot.pretraining.estimates.trial import Trial
from isoglot.pretraining.estimates.trial_process import TrialProcess, TrialSpec, answer


class LocalTrial(TrialProcess):
    """Answers requests as the process would."""

    @override
    def _ask(self, request):
        if not hasattr(self, "trial"):
            self.trial = Trial(replace(self.spec, max_bytes=None))
        found = answer(self.trial, request)
        return None if "fits" in found else found


def spec(config: PretrainConfig, corpus: Corpus, scratch: Path) -> TrialSpec:
    return TrialSpec(
        config=config,
        corpus=corpus.folder,
        scratch=scratch,
        steps=tuple(stage.steps or 1 for stage in config.stages),
        num_threads=1,
        max_bytes=None,
    )


def measurer(
    config: PretrainConfig, corpus: Corpus, scratch: Path, budget: TimeBudget | None = None
) -> RunMeasurer:
    objectives: dict[str, Objective] = objectives_of(config)
    return RunMeasurer(
        config=config,
        corpus=corpus,
        scratch=scratch,
        accelerator=Accelerator(cpu=True),
        objectives=objectives,
        console=Console(quiet=True),
        steps=tuple(stage.steps or 1 for stage in config.stages),
        budget=budget,
    )
