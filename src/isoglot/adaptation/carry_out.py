"""Carry out the plan of an adaptation, step by step.

    before -> grow -> prepare -> train -> choose -> after -> link -> speed -> export -> page

Each step leaves its result whole or not at all, and a record of what it was made from
(`folder.py`): after an interruption, of whatever kind, the same command goes on. Preparing and
training continue inside of their steps, too. The steps that score are in `scoring.py`.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console

from isoglot.adaptation.comparison import AdaptScores, Development, compare, read_scores
from isoglot.adaptation.display import StepDisplay
from isoglot.adaptation.findings import num_cores
from isoglot.adaptation.folder import (
    AdaptFolder,
    StepRecords,
    hash_files,
    hash_folder,
    hash_model,
)
from isoglot.adaptation.inputs import find_dictionaries
from isoglot.adaptation.plan_files import AdaptPlan
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.training_steps import fit_steps
from isoglot.atomic import write_json
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError
from isoglot.folders import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.adaptation.scores import ModelScores
    from isoglot.pretraining.config import Recipe


class TrainingStoppedError(Exception):
    """Training was asked to stop, and has saved a checkpoint."""

    def __init__(self, done: int, total: int) -> None:
        """After `done` of `total` steps."""
        super().__init__(f"training has stopped after step {done:,} of {total:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """One adaptation under way."""

    config: AdaptConfig
    plan: AdaptPlan
    folder: AdaptFolder
    display: StepDisplay
    console: Console

    def until_training(self) -> tuple[ModelScores, Corpus]:
        """Take the steps before training that are not done yet."""
        from isoglot.adaptation.scoring import own_vectors, score

        if not self.plan.new_words:
            self.display.drop("grow")
        if self.plan.prepare.knowledge is None:
            self.display.drop("link")
        self._expect(self.plan)
        sentences = None if own_vectors(self.base) is None else self.base
        before = score(self, "before", self.base, sentences)
        if self.plan.new_words:
            self._grow()
        return before, self._prepare()

    def with_steps_left(self) -> Adaptation:
        """With the training steps for which there is time, if training has not begun yet."""
        if self._has_begun():
            return self
        seconds = self.records.seconds("before")
        plan = fit_steps(self.plan, self.config, self.folder, seconds, self.note)
        if plan is not self.plan:
            self._expect(plan)
        return replace(self, plan=plan)

    def from_training(self, before: ModelScores, corpus: Corpus) -> AdaptScores:
        """Train, and take the steps after it that are not done yet.

        Raises:
            TrainingStoppedError: a signal has stopped the training.
        """
        from isoglot.adaptation.scoring import (
            choose_layers,
            compare_speed,
            score,
            score_knowledge,
        )

        trained = self._train(corpus)
        development = choose_layers(self, corpus)
        sentences = self.folder.sentence_model if development.vectors else None
        after = score(self, "after", self.trained_model, sentences)
        linking = score_knowledge(self, corpus)
        scores = compare(before, after, development, compare_speed(self), linking)
        if read_scores(self.folder.scores) != scores:
            write_json(self.folder.scores, scores.to_json(), indent=1)
        self._give(scores, corpus, development, trained)
        return scores

    @property
    def base(self) -> Path:
        """The folder of the encoder to start from."""
        return model_folder(self.config.encoder).resolve()

    @property
    def start(self) -> Path:
        """The folder that training starts from: with added words, if the vocabulary grows."""
        return self.folder.encoder if self.plan.new_words else self.base

    @property
    def trained_model(self) -> Path:
        """The exported folder of the run."""
        return self.folder.run / "model"

    @property
    def records(self) -> StepRecords:
        """The records of finished steps."""
        return StepRecords(self.folder.steps)

    def note(self, sentence: str) -> None:
        """Print a note above the progress bar."""
        self.display.say(f"note: {sentence}")

    def _expect(self, plan: AdaptPlan) -> None:
        """Tell the display how long the steps take."""
        for name, seconds in plan.step_seconds.items():
            self.display.expect(name, seconds)

    def step(
        self,
        name: str,
        inputs: dict[str, Any],
        work: Callable[[], dict[str, Any]],
        outputs: Sequence[Path] = (),
    ) -> dict[str, Any]:
        """The result of a step, shown while it runs; a step that is done is passed over."""
        result = self.records.result(name, inputs, outputs)
        if result is None:
            self.display.begin(name)
            result = self.records.run(name, inputs, work, outputs)
        self.display.finish(name)
        return result

    def _grow(self) -> None:
        """Add words of the samples to the vocabulary."""
        from isoglot.models.transplant.config import TransplantConfig
        from isoglot.models.transplant.run import grow

        chosen = self.plan.grow_from
        files = sorted(self.folder.sample.glob("*.txt"))
        texts = [file for file in files if not chosen or file.stem in chosen]
        out = self.folder.encoder
        found = find_dictionaries(self.config, self.folder.downloads)
        # names of files, in which * and [ are no patterns
        dictionaries = tuple(glob.escape(str(file)) for file in found)

        def work() -> dict[str, Any]:
            settings = TransplantConfig(fallback="subwords", dictionaries=dictionaries)
            number = self.plan.new_words
            report = grow(
                self.base, out, settings=settings, texts=texts, number=number, balance=files
            )
            for note in report.notes:
                self.note(note)
            return {}

        inputs = {
            "model": hash_model(self.base),
            "texts": hash_files(texts),
            "balance": hash_files(files),
            "number": self.plan.new_words,
            "dictionaries": hash_files(found),
        }
        self.step("grow", inputs, work, [out / "config.json"])

    def _prepare(self) -> Corpus:
        """Make the corpus, with the tokenizer of the encoder that training starts from."""
        from isoglot.corpus.pipeline.run import is_prepared, prepare

        settings, base, out = self.plan.prepare, self.folder.plan, self.folder.corpus

        def progress(_: str, done: int, total: int | None) -> None:
            if total:
                self.display.advance(done / total)

        if not is_prepared(settings, out, base=base):
            self.display.begin("prepare")
            workers = self.config.workers or num_cores()
            prepare(settings, out, base=base, workers=workers, progress=progress, overwrite=True)
        self.display.finish("prepare")
        return Corpus.open(out, verify="never")

    def _train(self, corpus: Corpus) -> dict[str, Any]:
        """Train, or continue; gives the steps, the tokens and what the model cannot hold."""
        recipe = self.plan.recipe
        data = {"corpus": corpus.fingerprint, "start": hash_model(self.start)}
        if self.plan.prepare.knowledge is not None:
            data["knowledge"] = corpus.knowledge.fingerprint
        inputs = {"recipe": recipe.fingerprint(), **data}
        work = partial(self._train_now, recipe, corpus, data)
        return self.step("train", inputs, work, [self.trained_model / "config.json"])

    def _has_begun(self) -> bool:
        """Whether an earlier command has begun to train."""
        from isoglot.pretraining.checkpoints import checkpoint

        saved = checkpoint.latest(self.folder.run / "checkpoints")
        return saved is not None or self.records.seconds("begun") is not None

    def _train_now(self, recipe: Recipe, corpus: Corpus, data: dict[str, str]) -> dict[str, Any]:
        from isoglot.pretraining.checkpoints import checkpoint
        from isoglot.pretraining.run import pretrain
        from isoglot.recipe import dump

        run = self.folder.run
        resume = checkpoint.latest(run / "checkpoints") is not None
        if resume and self.records.result("begun", data) is None:
            raise CheckpointError(
                f"{run} was begun with another corpus or encoder: the plan, the data or the "
                f"encoder has changed since. Restore it, or remove {run} to train again."
            )
        self.records.finish("begun", data, {}, seconds=0.0)
        total = sum(stage.steps or 0 for stage in recipe.stages)
        taken = [0, 0]  # in stages that are over, and in this one

        def on_step(result: Any) -> None:
            taken[0] += taken[1] if result.step <= taken[1] else 0
            taken[1] = result.step
            if total:
                self.display.advance(sum(taken) / total)

        outcome = pretrain(
            recipe,
            corpus,
            run,
            resume=resume,
            name=recipe.name,
            recipe_text=dump(recipe),
            console=self.console,
            on_step=on_step,
            part_of_plan=True,
        )
        if not outcome.finished:
            raise TrainingStoppedError(outcome.total_steps, total)
        for warning in outcome.warnings:
            self.note(warning)
        return {
            "steps": outcome.total_steps,
            "tokens": outcome.tokens,
            "limitations": list(outcome.warnings),
        }

    def _give(
        self,
        scores: AdaptScores,
        corpus: Corpus,
        development: Development,
        trained: dict[str, Any],
    ) -> None:
        """Write the folder for transformers, the cards of both folders, and the page."""
        from isoglot.adaptation.export import export_adapted
        from isoglot.adaptation.page import write_adapt_page

        folder, knowledge = self.folder, self.plan.prepare.knowledge
        inputs = {
            "model": hash_model(self.trained_model),
            "scores": hash_files([folder.scores]),
            "license": self.config.license,
            "name": folder.path.resolve().name,
        }

        def export() -> dict[str, Any]:
            export_adapted(
                self.config,
                folder,
                self.plan.recipe,
                scores,
                corpus,
                vectors=development.vectors,
                tokens=trained["tokens"],
                limitations=trained["limitations"],
                tables=None if knowledge is None else knowledge.tables,
            )
            return {}

        self.step("export", inputs, export, [folder.model / "config.json"])
        inputs["plan"] = hash_folder(folder.plan)
        inputs["metrics"] = hash_files(folder.run.glob("metrics.jsonl"))

        def page() -> dict[str, Any]:
            write_adapt_page(self.config, self.plan, folder, scores)
            return {}

        self.step("page", inputs, page, [folder.report])
