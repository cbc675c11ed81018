"""Fine-tune an encoder on tasks and score it across languages.

    request --plan--> trainings --data, head--> windows --train--> model --predict--> scores

`finetune` is the public function and `finetune_tasks` the same with a `FinetuneRequest`. Each
training is one model: one set of training languages with one random seed. Its scores are written
when it ends, and a training whose scores exist is skipped, so an interrupted call can be repeated.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.errors import ModelError
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.data import TestSets, read_examples, training_data
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.predict import predict, run_model
from isoglot.finetuning.protocols import build_request
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.save import prediction_files, save_model, write_n_best, write_predictions
from isoglot.finetuning.tagging import TokenClassificationHead
from isoglot.model_results import add_scores, existing_results, model_folder
from isoglot.results import Results, Score
from isoglot.tasks import find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isoglot.corpus.engine.runner import Progress
    from isoglot.finetuning.head import TaskHead
    from isoglot.finetuning.plan import TrainingSpec
    from isoglot.finetuning.settings import FinetuneRequest, Scenario

HEADS: dict[str, type[TaskHead[Any, Any]]] = {
    "classify": SequenceClassificationHead,
    "tag": TokenClassificationHead,
    "span": QuestionAnsweringHead,
    "choice": MultipleChoiceHead,
}
"""Kind of task -> its head."""


def finetune(
    model: str | Path,
    tasks: Sequence[str],
    data: str | Path = "eval",
    *,
    scenario: Scenario = "zero-shot",
    sources: Sequence[str] = ("en",),
    languages: Sequence[str] | None = None,
    train_languages: Sequence[str] | None = None,
    train_on: str | None = None,
    protocol: str = "xtreme",
    settings: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    save_models: str | Path | None = None,
    save_predictions: str | Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Fine-tune an encoder on tasks and score each model in many languages.

        results = isoglot.finetune("models/xlm-r", ["xnli"], "eval", protocol="xlm-k", seeds=2)

    Args:
        model: a Hugging Face folder of an encoder, or a run folder (`runs/NAME`).
        tasks: names of tasks (`isoglot show tasks`).
        data: folder of the tasks' files (docs/tasks.md); testbed tasks need none.
        scenario: training data: `zero-shot` (the source language), `translate-train`,
            `translate-train-all`, `pooled` or `supervised` (docs/finetune.md).
        sources: source languages, one training each.
        languages: languages to score, or a paper's set such as `xnli`; none: all.
        train_languages: languages of `translate-train-all` and `pooled`; none: all.
        train_on: task with the training data; none: the task itself (MLQA, XQuAD: SQuAD).
        protocol: paper whose hyperparameters are used (`isoglot show protocols`).
        settings: hyperparameters to change, by the names of `FinetuneConfig`: `{"epochs": 2}`.
        seeds: random seeds, or their number; none: the number of the protocol's paper.
        out: results file; scores in it are kept and not computed again. None: no file.
        save_models: folder for the fine-tuned models.
        save_predictions: folder for predictions, in the formats of the official scripts.
        progress: called with (name of the training, steps done, all steps).

    Returns:
        A score for each task, language, metric and seed.
    """
    request = build_request(
        scenario, sources, languages, train_languages, protocol, settings or {}, seeds
    )
    return finetune_tasks(
        model_folder(Path(model)),
        tasks,
        Path(data),
        request,
        train_on=train_on,
        out=None if out is None else Path(out),
        save_models=None if save_models is None else Path(save_models),
        save_predictions=None if save_predictions is None else Path(save_predictions),
        progress=progress,
    )


def finetune_tasks(
    folder: Path,
    tasks: Sequence[str],
    data: Path,
    request: FinetuneRequest,
    *,
    out: Path | None,
    train_on: str | None = None,
    save_models: Path | None = None,
    save_predictions: Path | None = None,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Results:
    """Fine-tune a model folder on tasks; the arguments are those of `finetune`.

    `note` is called with a sentence about the scores that `out` has already.
    """
    train_task = None if train_on is None else find_task(train_on)
    # every error in files and options is reported before the first training
    plans = [FinetunePlan(find_task(name), data, request, train_task) for name in tasks]
    results = existing_results(folder, out, tasks=tasks, note=note)
    for plan in plans:
        for scores in finetune_task(
            folder,
            plan,
            finished=results.scores,
            save_models=save_models,
            save_predictions=save_predictions,
            progress=progress,
        ):
            results = add_scores(results, scores, out)
    return results


def finetune_task(
    folder: Path,
    plan: FinetunePlan,
    *,
    finished: Iterable[Score] = (),
    save_models: Path | None = None,
    save_predictions: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[list[Score]]:
    """The trainings of one task: a list of scores for each.

    A training is skipped if all of its scores are among `finished`, and its model and predictions
    exist or are not to be saved.
    """
    trainer = _Finetuner(folder, plan)
    known = {((s.task, s.version, s.scenario, s.language), s.seed) for s in finished}
    for spec in plan.trainings:
        for seed in plan.request.seeds:
            name = f"{plan.task.name} {spec.title} seed {seed}"
            model = None if save_models is None else save_models / name.replace(" ", "-")
            files = {}
            if save_predictions is not None:
                label = plan.label(spec)
                files = prediction_files(
                    save_predictions, plan.task, label, seed, spec.test_languages
                )
            is_scored = {(key, seed) for key in plan.score_keys(spec)} <= known
            is_saved = model is None or model.exists()
            if is_scored and is_saved and all(file.exists() for file in files.values()):
                continue
            yield trainer.train_and_score(
                spec,
                seed,
                save_as=model,
                prediction_files=files,
                progress=None if progress is None else partial(progress, name),
            )


class _Finetuner:
    """Trains and scores the models of one plan."""

    def __init__(self, folder: Path, plan: FinetunePlan) -> None:
        self.folder, self.plan, self.settings = folder, plan, plan.settings
        self.pretokenization = Pretokenizer.load(folder)
        # test sets are pretokenized after training: a missing package is reported now
        self.pretokenization.check()
        self.head_class = HEADS[plan.task.kind]
        self.test_sets = TestSets(plan, self.head_class, self.pretokenization)

    def train_and_score(
        self,
        spec: TrainingSpec,
        seed: int,
        *,
        save_as: Path | None,
        prediction_files: Mapping[str, Path],
        progress: Callable[[int, int], None] | None,
    ) -> list[Score]:
        """Train one model and score it in its test languages."""
        # transformers' Trainer takes seconds to import
        from transformers import set_seed

        from isoglot.finetuning.train import BestEpoch, paired_windows, train

        if save_as is not None and save_as.exists():
            raise ModelError(f"{save_as} exists. Name another folder for the models, or remove it.")
        train_task, data_folder = self.plan.train_task, self.plan.data_folder
        data = training_data(train_task, data_folder, spec, self.settings, self.pretokenization)
        head = self.head_class(self.folder, self.settings, self.head_class.labels_of(data.examples))
        self.test_sets.check(spec, head.labels)
        windows = head.windows(data.examples, training=True)
        set_seed(seed)
        model = head.load_model()
        with tempfile.TemporaryDirectory(prefix="isoglot-finetune-") as scratch:
            best = BestEpoch(
                self._dev_score(spec, model, head),
                Path(scratch),
                higher_is_better=train_task.metrics[0].higher_is_better,
            )
            train(
                model,
                head,
                windows,
                paired_windows(windows, data.pairs),
                self.settings,
                seed=seed,
                scratch=Path(scratch),
                best=best,
                progress=progress,
            )
        if save_as is not None:
            save_model(model, head, save_as)
        epoch = self.settings.epochs if best.epoch is None else best.epoch + 1
        return [
            replace(score, seed=seed, scenario=self.plan.label(spec), epoch=epoch)
            for language in spec.test_languages
            for score in self._test_scores(model, head, language, prediction_files.get(language))
        ]

    def _dev_score(
        self, spec: TrainingSpec, model: Any, head: TaskHead[Any, Any]
    ) -> Callable[[], float] | None:
        """A function that scores the model on the dev data of the selection rule, if any."""
        task, languages = self.plan.selection_data(spec)
        if not languages:
            return None
        dev_sets = {
            code: read_examples(task, self.plan.data_folder, code, "dev", self.pretokenization)
            for code in languages
        }
        metric = task.metrics[0].name
        return lambda: mean(
            task.score(examples, predict(model, head, examples), language)[metric]
            for language, examples in dev_sets.items()
        )

    def _test_scores(
        self, model: Any, head: TaskHead[Any, Any], language: str, file: Path | None
    ) -> list[Score]:
        task, examples = self.plan.task, self.test_sets.examples(language)
        windows, logits = run_model(model, head, examples)
        predictions = head.decode(examples, windows, logits)
        values = task.score(examples, predictions, language)
        if file is not None:
            write_predictions(file, task.kind, examples, predictions)
            if isinstance(head, QuestionAnsweringHead):
                write_n_best(file, examples, head.n_best(len(examples), windows, logits))
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
            # SQuAD 2.0's metrics of unanswerable questions are missing where there are none
            if metric.name in values
        ]
