"""Fine-tune an encoder on tasks and score it across languages.

    request --plan--> trainings --data, head--> windows --train--> model --predict--> scores

`finetune` is the public function and `finetune_tasks` the same with a `FinetuneRequest`. Each
training is one model: one set of training languages with one random seed. Its scores are written
when it ends, and a training whose scores exist is skipped, so an interrupted call can be repeated.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from isoglot.argument_names import public
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.data import TestSets, check_translations, read_examples, training_data
from isoglot.finetuning.jobs import SaveConfig, TrainingJob, jobs_to_do
from isoglot.finetuning.plan import FinetunePlan
from isoglot.finetuning.predict import predict, run_model
from isoglot.finetuning.protocols import build_request
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.save import save_model, write_n_best, write_predictions
from isoglot.finetuning.tagging import TokenClassificationHead
from isoglot.folders import model_folder
from isoglot.intervals import chance, measure, to_score
from isoglot.locks import lock_file, lock_folder
from isoglot.model_results import add_scores, existing_results
from isoglot.results import Results, Score
from isoglot.tasks import find_task
from isoglot.tasks.base import data_folders
from isoglot.tasks.language_sets import absent_note, languages_with_data
from isoglot.tasks.unread import unread_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isoglot.corpus.engine.runner import Progress
    from isoglot.finetuning.head import TaskHead
    from isoglot.finetuning.plan import TrainingSpec
    from isoglot.finetuning.settings import FinetuneRequest, Scenario
    from isoglot.tasks.base import DataFolders

    Note = Callable[[str], None]

HEADS: dict[str, type[TaskHead[Any, Any]]] = {
    "text-classification": SequenceClassificationHead,
    "token-classification": TokenClassificationHead,
    "question-answering": QuestionAnsweringHead,
    "multiple-choice": MultipleChoiceHead,
}
"""Kind of task -> its head."""


@public
def finetune(
    model: str | Path,
    tasks: str | Sequence[str],
    data: str | Path | Sequence[str | Path] = "eval",
    *,
    scenario: Scenario = "zero-shot",
    sources: str | Sequence[str] = ("en",),
    languages: str | Sequence[str] | None = None,
    train_languages: Sequence[str] | None = None,
    train_on: str | None = None,
    protocol: str = "xtreme",
    settings: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    save_models: str | Path | None = None,
    save_predictions: str | Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Results:
    """Fine-tune an encoder on tasks and score each model in many languages.

        results = isoglot.finetune("models/xlm-r", ["xnli"], "eval", protocol="xlm-k", seeds=2)

    Args:
        model: a Hugging Face folder of an encoder, a run (`runs/NAME`) or a name on the hub.
        tasks: names of tasks (`isoglot show tasks`).
        data: folders of the tasks' files (docs/tasks.md); the first that has a split counts.
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
        progress: called with (name of the training, steps or languages done, all of them).
        note: called with sentences about new weights, existing scores and files that are not read.

    Returns:
        A score for each task, language, metric and seed.
    """
    tasks = [tasks] if isinstance(tasks, str) else tasks
    languages = [languages] if isinstance(languages, str) else languages
    sources = [sources] if isinstance(sources, str) else sources
    request = build_request(
        scenario, sources, languages, train_languages, protocol, settings or {}, seeds
    )
    if languages is not None:
        available = languages_with_data([find_task(name) for name in tasks], data_folders(data))
        absent = absent_note(languages, available)
        if absent is not None and note is not None:
            note(absent)
    return finetune_tasks(
        model_folder(model),
        tasks,
        data_folders(data),
        request,
        train_on=train_on,
        out=None if out is None else Path(out),
        save_models=None if save_models is None else Path(save_models),
        save_predictions=None if save_predictions is None else Path(save_predictions),
        progress=progress,
        note=note,
    )


def finetune_tasks(
    folder: Path,
    tasks: Sequence[str],
    data: DataFolders,
    request: FinetuneRequest,
    *,
    out: Path | None,
    train_on: str | None = None,
    save_models: Path | None = None,
    save_predictions: Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Results:
    """Fine-tune a model folder on tasks; the arguments are those of `finetune`.

    `note` is called with sentences about scores that `out` has already and about new weights.
    """
    train_task = None if train_on is None else find_task(train_on)
    # every error in files and options is reported before the first training
    plans = [FinetunePlan(find_task(name), data, request, train_task) for name in tasks]
    for kind in dict.fromkeys(plan.task.kind for plan in plans):
        HEADS[kind].check_architecture(folder, kind)
    for task in {plan.task.name: plan.task for plan in plans}.values():
        if note is not None and (unread := unread_note(task, data)):
            note(unread)
    results = existing_results(folder, out)
    save = SaveConfig(models=save_models, predictions=save_predictions)
    made_by = folder, results.fingerprint
    options: dict[str, Any] = {"finished": results.scores, "save": save, "note": note}
    jobs = [list(jobs_to_do(plan, *made_by, **options)) for plan in plans]
    for plan, of_plan in zip(plans, jobs, strict=True):
        check_translations(plan, list(dict.fromkeys(job.spec for job in of_plan)))
    for plan, of_plan in zip(plans, jobs, strict=True):
        for scores in train_jobs(folder, plan, of_plan, progress=progress, note=note):
            results = add_scores(results, scores, out)
    return results


def train_jobs(
    folder: Path,
    plan: FinetunePlan,
    jobs: Sequence[TrainingJob],
    *,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Iterator[list[Score]]:
    """The trainings of one task: a list of scores for each."""
    trainer = _Finetuner(folder, plan)
    for number, job in enumerate(jobs):
        with _lock_outputs(job):
            scores = trainer.train_and_score(
                job, progress or _silent, note if number == 0 else None
            )
        yield scores


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody asked for."""


def _precision_note(precision: str, model: Any) -> str | None:
    import torch

    from isoglot.models.cpu_precision import precision_note

    num_weights = sum(weight.numel() for weight in model.parameters())
    return precision_note(precision, on_gpu=torch.cuda.is_available(), num_weights=num_weights)


@contextmanager
def _lock_outputs(job: TrainingJob) -> Iterator[None]:
    """Lock what one training writes: its model and the folder of its predictions."""
    with ExitStack() as stack:
        if job.save_as is not None:
            stack.enter_context(lock_file(job.save_as))
        for folder in {file.parent for file in job.prediction_files.values()}:
            stack.enter_context(lock_folder(folder))
        yield


class _Finetuner:
    """Trains and scores the models of one plan."""

    def __init__(self, folder: Path, plan: FinetunePlan) -> None:
        from isoglot.models.cpu_precision import check_cpu_precision

        self.folder, self.plan, self.settings = folder, plan, plan.settings
        self.pretokenization = Pretokenizer.load(folder)
        # test sets are pretokenized after training: a missing package is reported now
        self.pretokenization.check()
        check_cpu_precision(plan.settings.precision)
        self.head_class = HEADS[plan.task.kind]
        self.test_sets = TestSets(plan, self.head_class, self.pretokenization)

    def train_and_score(
        self, job: TrainingJob, progress: Progress, note: Note | None
    ) -> list[Score]:
        """Train one model and score it in its test languages."""
        # transformers' Trainer takes seconds to import
        from transformers import set_seed

        from isoglot.finetuning.train import BestEpoch, paired_windows, train

        spec, seed = job.spec, job.seed
        train_task, data_folder = self.plan.train_task, self.plan.data_folder
        data = training_data(train_task, data_folder, spec, self.settings, self.pretokenization)
        head = self.head_class(self.folder, self.settings, self.head_class.labels_of(data.examples))
        self.test_sets.check(spec, head.labels)
        windows = head.windows(data.examples, training=True, languages=data.languages)
        set_seed(seed)
        model = head.load_model(note)
        if note is not None and (advice := _precision_note(self.settings.precision, model)):
            note(advice)
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
                progress=partial(progress, job.name),
            )
        if job.save_as is not None and job.record is not None:
            save_model(model, head, job.save_as, job.record)
        epoch = self.settings.epochs if best.epoch is None else best.epoch + 1
        scores: list[Score] = []
        for number, language in enumerate(spec.test_languages):
            progress(f"{job.name}, scoring", number, len(spec.test_languages))
            scores += self._test_scores(model, head, language, job)
        progress(f"{job.name}, scoring", len(spec.test_languages), len(spec.test_languages))
        label = self.plan.label(spec)
        return [replace(score, seed=seed, scenario=label, epoch=epoch) for score in scores]

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
            task.score(examples, predict(model, head, examples, language), language)[metric]
            for language, examples in dev_sets.items()
        )

    def _test_scores(
        self, model: Any, head: TaskHead[Any, Any], language: str, job: TrainingJob
    ) -> list[Score]:
        task, examples = self.plan.task, self.test_sets.examples(language)
        windows, logits = run_model(model, head, examples, language)
        predictions = head.decode(examples, windows, logits)
        values = measure(task, examples, predictions, language)
        by_chance, data = chance(task, examples), self.plan.data_hash(job.spec, language)
        file = job.prediction_files.get(language)
        if file is not None and job.record is not None:
            write_predictions(file, task.kind, examples, predictions)
            if isinstance(head, QuestionAnsweringHead):
                write_n_best(file, examples, head.n_best(len(examples), windows, logits))
            job.record.add_test_data(file.parent, language, self.plan.test_files(language))
        return [
            to_score(
                measured,
                Score(
                    task=task.name,
                    version=task.version,
                    language=language,
                    metric=name,
                    value=measured.value,
                    count=measured.count,
                    higher_is_better=metric.higher_is_better,
                    chance=by_chance if metric is task.metrics[0] else None,
                    selection=self.settings.selection,
                    data=data,
                ),
                keep_outcomes=name == task.metrics[0].name,
            )
            for metric in task.metrics
            # SQuAD 2.0's metrics of unanswerable questions are missing where there are none; those
            # of several treebanks have their names (`accuracy gsd`)
            for name, measured in values.items()
            if name == metric.name or name.startswith(f"{metric.name} ")
        ]
