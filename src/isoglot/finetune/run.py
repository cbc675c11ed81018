"""Fine-tune an encoder on a task and score it: scenarios, seeds, the selection rule.

    plan, seed --read, switch--> examples --head--> pieces --train--> model --predict--> scores

Each training is one plan with one seed; its scores come as soon as it is done, so that whoever asks
can write them down before the next one begins.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError
from isoglot.finetune.choice import Choose
from isoglot.finetune.classify import Classify
from isoglot.finetune.data import read, training_data
from isoglot.finetune.keep import check_free
from isoglot.finetune.keep import keep as keep_model
from isoglot.finetune.predict import predictions
from isoglot.finetune.scenarios import plans
from isoglot.finetune.selection import Best
from isoglot.finetune.span import Answers
from isoglot.finetune.tag import Tag
from isoglot.results import Score
from isoglot.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isoglot.finetune.asked import Finetuning
    from isoglot.finetune.head import Head
    from isoglot.finetune.scenarios import Plan
    from isoglot.tasks.base import Split, Task

HEADS: dict[str, type[Head[Any, Any]]] = {
    "classify": Classify,
    "tag": Tag,
    "span": Answers,
    "choice": Choose,
}
"""Kind of task -> the head that learns it."""

TRAINED_ON = {"mlqa": "squad", "xquad": "squad", "esxnli": "xnli", "conll2002": "conll2003"}
"""Task -> the one that papers train for it, where it has no data in the source language."""


def finetune_and_score(
    model_folder: Path,
    task: Task[Any, Any],
    data_folder: Path,
    asked: Finetuning,
    *,
    train_task: Task[Any, Any] | None = None,
    finished: Iterable[Score] = (),
    keep: Path | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Iterator[list[Score]]:
    """Train and score, one list of scores for each training.

    Args:
        model_folder: a Hugging Face folder of an encoder.
        task: what to score on.
        data_folder: where the tasks' files lie.
        asked: scenario, settings and seeds.
        train_task: whose training and dev data to use; none: the task's own, or what `TRAINED_ON`
            says.
        finished: scores that exist; a training with all of its scores among them is skipped.
        keep: a folder to keep the fine-tuned models in, each in a folder of its own.
        progress: told (what, steps done, all steps).
    """
    train_task = train_task or _training_task(task, data_folder, asked.scenario.sources)
    run = _Run(model_folder, task, train_task, data_folder, asked)
    known = {(s.task, s.version, s.scenario, s.seed, s.language) for s in finished}
    for plan in run.plans:
        label = run.label(plan)
        for seed in asked.seeds:
            cells = {(task.name, task.version, label, seed, code) for code in plan.score}
            if cells <= known:
                continue
            name = f"{task.name} {plan.title} seed {seed}"
            told = None if progress is None else _teller(progress, name)
            kept = None if keep is None else keep / name.replace(" ", "-")
            yield run.train_and_score(plan, seed, kept, told)


class _Run:
    """What all trainings of one call share: the task's parts and the settings."""

    def __init__(
        self,
        model_folder: Path,
        task: Task[Any, Any],
        train_task: Task[Any, Any],
        data_folder: Path,
        asked: Finetuning,
    ) -> None:
        self.model_folder, self.task, self.train_task = model_folder, task, train_task
        self.data_folder, self.asked, self.settings = data_folder, asked, asked.settings(task)
        parts = task.parts(data_folder)
        self.split: Split = "test" if any(part.split == "test" for part in parts) else "dev"
        scorable = [part.language for part in parts if part.split == self.split]
        trainable = [p.language for p in train_task.parts(data_folder) if p.split == "train"]
        for name, what, languages in (
            (task.name, "score", scorable),
            (train_task.name, "train on", trainable),
        ):
            if not languages:
                raise CorpusError(
                    f"{data_folder} has no files of {name} to {what}. docs/evaluate.md shows where "
                    "they are looked for."
                )
        self.plans = plans(asked.scenario, trainable=trainable, scorable=scorable, task=task.name)
        if self.split == "dev" and self.settings.selection != "last" and train_task is task:
            raise CorpusError(
                f"{data_folder} has no test part of {task.name}: its dev part would both choose "
                "the model and score it. Add --selection last."
            )

        for plan in self.plans:
            self._check_dev(plan)

    def label(self, plan: Plan) -> str:
        """How results name the scores of a plan."""
        return self.asked.label(plan, self.task, self.train_task)

    def train_and_score(
        self, plan: Plan, seed: int, kept: Path | None, told: Callable[[int, int], None] | None
    ) -> list[Score]:
        """One training, and the scores of its languages."""
        # waits for its first use: transformers' Trainer takes seconds to import
        from transformers import set_seed

        from isoglot.finetune.training import coupled_pieces, train

        if kept is not None:
            check_free(kept)
        data = training_data(self.train_task, self.data_folder, plan, self.settings)
        kind = HEADS[self.task.kind]
        head = kind(self.model_folder, self.settings, kind.labels_of(data.examples))
        pieces = head.pieces(data.examples, training=True)
        set_seed(seed)
        model = head.open()
        with tempfile.TemporaryDirectory(prefix="isoglot-finetune-") as scratch:
            metric = self.train_task.metrics[0]
            best = Best(
                self._judge(plan, model, head),
                Path(scratch),
                higher_is_better=metric.higher_is_better,
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
        return [
            score
            for language in plan.score
            for score in self._scores(model, head, language, self.label(plan), seed)
        ]

    def _judged_on(self, plan: Plan) -> tuple[Task[Any, Any], tuple[str, ...]]:
        """The task and the languages whose dev parts the selection rule looks at."""
        if self.settings.selection == "last":
            return self.train_task, ()
        if self.settings.selection == "source-dev":
            return self.train_task, plan.train
        return (self.task if self.split == "test" else self.train_task), plan.score

    def _check_dev(self, plan: Plan) -> None:
        task, languages = self._judged_on(plan)
        has_dev = {part.language for part in task.parts(self.data_folder) if part.split == "dev"}
        without = [language for language in languages if language not in has_dev]
        if without:
            raise CorpusError(
                f"{self.data_folder} has no dev part of {task.name} for {', '.join(without)}, "
                f"which --selection {self.settings.selection} needs. Add --selection last."
            )

    def _judge(self, plan: Plan, model: Any, head: Head[Any, Any]) -> Callable[[], float] | None:
        """What gives the model's score on the dev parts that the selection rule names."""
        task, languages = self._judged_on(plan)
        if not languages:
            return None
        devs = {language: read(task, self.data_folder, language, "dev") for language in languages}
        metric = task.metrics[0].name

        def judge() -> float:
            return mean(
                task.score(examples, predictions(model, head, examples), language)[metric]
                for language, examples in devs.items()
            )

        return judge

    def _scores(
        self, model: Any, head: Head[Any, Any], language: str, label: str, seed: int
    ) -> list[Score]:
        examples = read(self.task, self.data_folder, language, self.split)
        values = self.task.score(examples, predictions(model, head, examples), language)
        return [
            Score(
                task=self.task.name,
                version=self.task.version,
                language=language,
                metric=metric.name,
                value=values[metric.name],
                count=len(examples),
                higher_is_better=metric.higher_is_better,
                seed=seed,
                scenario=label,
            )
            for metric in self.task.metrics
        ]


def _training_task(
    task: Task[Any, Any], data_folder: Path, sources: Sequence[str]
) -> Task[Any, Any]:
    """The task itself where it can be trained on in a source language, or the papers' choice."""
    trainable = {part.language for part in task.parts(data_folder) if part.split == "train"}
    other = TRAINED_ON.get(task.name)
    return task if other is None or trainable & set(sources) else find_task(other)


def _teller(
    progress: Callable[[str, int, int | None], None], name: str
) -> Callable[[int, int], None]:
    return lambda done, total: progress(name, done, total)
