"""Fine-tune an encoder on a task and score it: scenarios, seeds, the selection rule.

    plan, seed --read, switch--> examples --head--> pieces --train--> model --predict--> scores

Each training is one plan with one seed; its scores come as soon as it is done, so that whoever asks
can write them down before the next one begins.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.finetune.choice import Choose
from isoglot.finetune.classify import Classify
from isoglot.finetune.data import read, training_data
from isoglot.finetune.keep import check_free
from isoglot.finetune.keep import keep as keep_model
from isoglot.finetune.predict import predictions, read_by
from isoglot.finetune.predicted import file_of, folder_of, write_n_best, write_predictions
from isoglot.finetune.prepared import Prepared
from isoglot.finetune.scored import Scored
from isoglot.finetune.selection import Best
from isoglot.finetune.span import Answers
from isoglot.finetune.tag import Tag
from isoglot.results import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isoglot.finetune.asked import Finetuning
    from isoglot.finetune.head import Head
    from isoglot.finetune.scenarios import Plan
    from isoglot.tasks.base import Task

HEADS: dict[str, type[Head[Any, Any]]] = {
    "classify": Classify,
    "tag": Tag,
    "span": Answers,
    "choice": Choose,
}
"""Kind of task -> the head that learns it."""


def finetune_and_score(
    model_folder: Path,
    task: Task[Any, Any],
    data_folder: Path,
    asked: Finetuning,
    *,
    train_task: Task[Any, Any] | None = None,
    finished: Iterable[Score] = (),
    keep: Path | None = None,
    write: Path | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Iterator[list[Score]]:
    """Train and score, one list of scores for each training.

    Args:
        model_folder: a Hugging Face folder of an encoder.
        task: what to score on.
        data_folder: where the tasks' files lie.
        asked: scenario, settings and seeds.
        train_task: whose training and dev data to use; none: see `Prepared`.
        finished: scores that exist; a training with all of its scores among them is skipped, if
            its model is not to be kept or is there, and its predictions likewise.
        keep: a folder to keep the fine-tuned models in, each in a folder of its own.
        write: a folder to write predictions to (see `predicted`).
        progress: told (what, steps done, all steps).
    """
    run = _Run(model_folder, Prepared(task, data_folder, asked, train_task))
    known = {((s.task, s.version, s.scenario, s.language), s.seed) for s in finished}
    for plan in run.prepared.plans:
        for seed in asked.seeds:
            name = f"{task.name} {plan.title} seed {seed}"
            kept = None if keep is None else keep / name.replace(" ", "-")
            files = run.files(plan, seed, write)
            done = {(cell, seed) for cell in run.prepared.cells(plan)} <= known
            there = kept is None or kept.exists()
            if done and there and all(file.exists() for file in files.values()):
                continue
            told = None if progress is None else _teller(progress, name)
            yield run.train_and_score(plan, seed, kept, files, told)


class _Run:
    """What all trainings of one call share."""

    def __init__(self, model_folder: Path, prepared: Prepared) -> None:
        self.model_folder, self.prepared, self.settings = model_folder, prepared, prepared.settings
        self.words = Pretokenization.load(model_folder)
        # what is scored is read after training: better to miss a package before
        self.words.check()
        self.kind = HEADS[prepared.task.kind]
        self.scored = Scored(prepared, self.kind, self.words)

    def files(self, plan: Plan, seed: int, root: Path | None) -> dict[str, Path]:
        """Where the predictions in each language are to be written, if they are."""
        if root is None:
            return {}
        task = self.prepared.task
        folder = folder_of(root, task.name, self.prepared.label(plan), seed)
        return {language: file_of(folder, task.kind, language) for language in plan.score}

    def train_and_score(
        self,
        plan: Plan,
        seed: int,
        kept: Path | None,
        files: Mapping[str, Path],
        told: Callable[[int, int], None] | None,
    ) -> list[Score]:
        """One training, and the scores of its languages."""
        # waits for its first use: transformers' Trainer takes seconds to import
        from transformers import set_seed

        from isoglot.finetune.training import coupled_pieces, train

        if kept is not None:
            check_free(kept)
        train_task, folder = self.prepared.train_task, self.prepared.data_folder
        data = training_data(train_task, folder, plan, self.settings, self.words)
        head = self.kind(self.model_folder, self.settings, self.kind.labels_of(data.examples))
        self.scored.check(plan, head.labels)
        pieces = head.pieces(data.examples, training=True)
        set_seed(seed)
        model = head.open()
        with tempfile.TemporaryDirectory(prefix="isoglot-finetune-") as scratch:
            best = Best(
                self._judge(plan, model, head),
                Path(scratch),
                higher_is_better=train_task.metrics[0].higher_is_better,
            )
            train(
                model,
                head,
                pieces,
                coupled_pieces(pieces, data.couples),
                self.settings,
                seed=seed,
                scratch=Path(scratch),
                best=best,
                progress=told,
            )
        if kept is not None:
            keep_model(model, head, kept)
        epoch = self.settings.epochs if best.epoch is None else best.epoch + 1
        return [
            replace(score, seed=seed, scenario=self.prepared.label(plan), epoch=epoch)
            for language in plan.score
            for score in self._scores(model, head, language, files.get(language))
        ]

    def _judge(self, plan: Plan, model: Any, head: Head[Any, Any]) -> Callable[[], float] | None:
        """What gives the model's score on the dev parts that the selection rule names."""
        task, languages = self.prepared.judged_on(plan)
        if not languages:
            return None
        folder = self.prepared.data_folder
        devs = {code: read(task, folder, code, "dev", self.words) for code in languages}
        metric = task.metrics[0].name

        def judge() -> float:
            return mean(
                task.score(examples, predictions(model, head, examples), language)[metric]
                for language, examples in devs.items()
            )

        return judge

    def _scores(
        self,
        model: Any,
        head: Head[Any, Any],
        language: str,
        file: Path | None,
    ) -> list[Score]:
        task, examples = self.prepared.task, self.scored.examples(language)
        pieces, logits = read_by(model, head, examples)
        said = head.predict(examples, pieces, logits)
        values = task.score(examples, said, language)
        if file is not None:
            write_predictions(file, task.kind, examples, said)
            if isinstance(head, Answers):
                write_n_best(file, examples, head.n_best(len(examples), pieces, logits))
        return [
            Score(
                task=task.name,
                version=task.version,
                language=language,
                metric=metric.name,
                value=values[metric.name],
                count=len(examples),
                higher_is_better=metric.higher_is_better,
                selection=self.settings.selection,
            )
            for metric in task.metrics
            # squad-v2 says nothing of questions without an answer where there are none
            if metric.name in values
        ]


def _teller(
    progress: Callable[[str, int, int | None], None], name: str
) -> Callable[[int, int], None]:
    return lambda done, total: progress(name, done, total)
