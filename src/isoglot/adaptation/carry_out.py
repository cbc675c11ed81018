"""Carry out the plan of an adaptation, step by step.

    before -> grow -> prepare -> train -> choose -> after -> link -> speed -> export -> page

Each step leaves its result whole or not at all, and a record of what it was made from (`steps.py`):
after an interruption, of whatever kind, the same command goes on. Preparing and training continue
inside of their steps, too.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from isoglot.adaptation.comparison import AdaptScores, Development, compare, read_scores
from isoglot.adaptation.config import AdaptConfig
from isoglot.adaptation.display import StepDisplay
from isoglot.adaptation.findings import num_cores
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.inputs import find_dictionaries
from isoglot.adaptation.plan import AdaptPlan
from isoglot.adaptation.replan import fit_steps
from isoglot.adaptation.steps import (
    StepRecords,
    hash_files,
    hash_folder,
    hash_model,
    hash_sentences,
)
from isoglot.atomic import write_json
from isoglot.corpus import Corpus
from isoglot.errors import CheckpointError
from isoglot.folders import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isoglot.adaptation.comparison import Choice, Comparison
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
        if not self.plan.new_words:
            self.display.drop("grow")
        if self.plan.prepare.knowledge is None:
            self.display.drop("link")
        self._expect(self.plan)
        before = self._score("before", self.base)
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
        trained = self._train(corpus)
        development = self._choose(corpus)
        sentences = self.folder.sentence_model if development.vectors else None
        after = self._score("after", self.trained_model, sentences)
        linking = self._link(corpus)
        scores = compare(before, after, development, self._speed(), linking)
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

    def _step(
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

    def _score(self, name: str, model: Path, sentences: Path | None = None) -> ModelScores:
        """The scores of the encoder, before or after."""
        from isoglot.adaptation.scores import (
            HeldoutData,
            ModelScores,
            gold_alignments,
            score_model,
        )

        folders = [Path(one).expanduser() for one in self.config.alignments]
        gold = gold_alignments(folders, self.config.languages)

        def work() -> dict[str, Any]:
            def report(sentence: str, share: float) -> None:
                self.display.say(f"  {sentence}")
                self.display.advance(share)

            data = HeldoutData.read(self.folder.heldout, gold)
            found = score_model(model, data, sentences=sentences, report=report, note=self.note)
            return found.to_json()

        inputs = {
            "model": hash_model(model),
            "heldout": hash_folder(self.folder.heldout),
            "alignments": [hash_files(split.files) for _, split in gold],
            "sentences": None if sentences is None else hash_sentences(sentences),
        }
        found = self._step(name, inputs, work)
        seconds = self.records.seconds(name)
        if name == "before" and seconds is not None:
            self.display.expect("after", seconds)
        return ModelScores.from_json(found)

    def _speed(self) -> tuple[float, float]:
        """Sentences per second of both encoders, timed side by side."""
        from isoglot.adaptation.scores import HeldoutData, sentences_per_second

        def work() -> dict[str, Any]:
            lines = HeldoutData.read(self.folder.heldout).lines.values()
            both = [self.base, self.trained_model]
            found = sentences_per_second(both, [line for own in lines for line in own])
            return {"before": found[0], "after": found[1]}

        models = [hash_model(self.base), hash_model(self.trained_model)]
        found = self._step("speed", {"models": models}, work)
        return found["before"], found["after"]

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
            report = grow(self.base, out, settings=settings, texts=texts, number=number)
            for note in report.notes:
                self.note(note)
            return {}

        inputs = {
            "model": hash_model(self.base),
            "texts": hash_files(texts),
            "number": self.plan.new_words,
            "dictionaries": hash_files(found),
        }
        self._step("grow", inputs, work, [out / "config.json"])

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
        return self._step("train", inputs, work, [self.trained_model / "config.json"])

    def _has_begun(self) -> bool:
        """Whether an earlier command has begun to train."""
        from isoglot.pretraining import checkpoint

        saved = checkpoint.latest(self.folder.run / "checkpoints")
        return saved is not None or self.records.seconds("begun") is not None

    def _train_now(self, recipe: Recipe, corpus: Corpus, data: dict[str, str]) -> dict[str, Any]:
        from isoglot.pretraining import checkpoint
        from isoglot.pretraining.run import pretrain
        from isoglot.recipe import dump

        run = self.folder.run
        resume = checkpoint.latest(run / "checkpoints") is not None
        if resume and self.records.result("begun", data) is None:
            raise CheckpointError(
                f"{run} was begun with another corpus or encoder: the plan, the data or the "
                f"encoder have changed since. Undo that, or remove {run} to train again."
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

    def _choose(self, corpus: Corpus) -> Development:
        """Choose layers and pooling on the development pairs; write the folder for sentences."""
        from isoglot.adaptation.development import (
            export_sentences,
            score_development,
            write_development_pairs,
        )

        pairs, model, out = self.folder.development, self.trained_model, self.folder.sentence_model

        def work() -> dict[str, Any]:
            write_development_pairs(corpus, pairs)
            before = score_development(self.base, pairs)
            self.display.advance(0.3)
            after = score_development(model, pairs)
            self.display.advance(0.6)
            vectors = export_sentences(model, out, pairs, self.console)
            return {"before": before, "after": after, "vectors": vectors}

        inputs = {
            "before": hash_model(self.base),
            "after": hash_model(model),
            "corpus": corpus.fingerprint,
        }
        found = Development(**self._step("choose", inputs, work, [pairs]))
        if found.vectors and not out.is_dir():  # it was removed
            export_sentences(model, out, pairs, self.console)
        return found

    def _link(self, corpus: Corpus) -> tuple[list[Comparison], list[Choice]]:
        """Both models on held-out mentions and facts; nothing without knowledge."""
        if self.plan.prepare.knowledge is None:
            return [], []
        from isoglot.adaptation.linking import LinkingScores, compare_linking, score_both

        both, folder = (self.base, self.trained_model), self.folder.linking
        work = partial(
            score_both, corpus, both, folder, advance=self.display.advance, note=self.note
        )
        inputs = {
            "models": [hash_model(model) for model in both],
            "knowledge": corpus.knowledge.fingerprint,
        }
        found = self._step("link", inputs, work, [folder])
        return compare_linking(*map(LinkingScores.from_json, found.values())) if found else ([], [])

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

        self._step("export", inputs, export, [folder.model / "config.json"])
        inputs["plan"] = hash_folder(folder.plan)
        inputs["metrics"] = hash_files(folder.run.glob("metrics.jsonl"))

        def page() -> dict[str, Any]:
            write_adapt_page(self.config, self.plan, folder, scores, self.records)
            return {}

        self._step("page", inputs, page, [folder.report])
