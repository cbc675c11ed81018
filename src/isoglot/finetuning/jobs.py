"""The trainings of a plan that are still to be done, and the files that they leave.

    plan, seeds --(do scores, saved models and predictions exist?)--> TrainingJob

All folders are checked before the first training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import ModelError
from isoglot.finetuning.plan import FinetunePlan, TrainingSpec
from isoglot.finetuning.record import FinetuneRecord
from isoglot.finetuning.save import file_name, prediction_files
from isoglot.tasks.data_files import files_fingerprint

if TYPE_CHECKING:
    from isoglot.results import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveConfig:
    """What a fine-tuning leaves besides its scores."""

    models: Path | None = None
    """Folder for the fine-tuned models; none: not saved."""
    predictions: Path | None = None
    """Folder for predictions; none: not saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One training, and where its model and its predictions go."""

    name: str
    """Task, scenario and seed, for progress."""
    spec: TrainingSpec
    seed: int
    save_as: Path | None = None
    """Folder of the fine-tuned model, if it is to be saved."""
    prediction_files: Mapping[str, Path]
    """Language -> file of its predictions, if they are to be saved."""
    record: FinetuneRecord | None = None
    """What the model and the predictions are made from; none if nothing is saved."""


def jobs_to_do(
    plan: FinetunePlan,
    model: Path,
    fingerprint: str,
    *,
    finished: Iterable[Score] = (),
    save: SaveConfig,
    note: Callable[[str], None] | None = None,
) -> Iterator[TrainingJob]:
    """The trainings of a plan without those whose scores, of the same data, are among `finished`.

    `note` is called with a sentence about each training that has scores. A training is repeated if
    its model or a file of predictions is to be saved and is missing, or if the test data that was
    predicted has changed.
    """
    known = {((s.task, s.version, s.scenario, s.language), s.seed): s.data for s in finished}
    for spec in plan.trainings:
        record = _record(plan, spec, model, fingerprint) if save != SaveConfig() else None
        for seed in plan.request.seeds:
            job = _job(plan, spec, seed, save, record)
            keys = plan.score_keys(spec)
            is_scored = {(key, seed) for key in keys} <= set(known)
            if is_scored:
                is_scored = all(known[key, seed] == plan.data_hash(spec, key[-1]) for key in keys)
                _note_reuse(job.name, note, is_scored=is_scored)
            # all are looked at, so that files of another training are refused in any case
            is_saved = job.save_as is None or _has_model(job)
            is_predicted = _has_predictions(plan, job)
            if is_scored and is_saved and is_predicted:
                continue
            if job.save_as is not None and is_saved:
                raise ModelError(
                    f"{job.save_as} exists, and its scores or predictions do not. Name another "
                    "folder with --save-models, or remove this one."
                )
            yield job


def _note_reuse(name: str, note: Callable[[str], None] | None, *, is_scored: bool) -> None:
    if note is not None and is_scored:
        note(f"{name} is not trained again: weights and data are those of its scores.")
    elif note is not None:
        note(f"{name} is trained again: its scores are of other data, or of no known data.")


def _job(
    plan: FinetunePlan,
    spec: TrainingSpec,
    seed: int,
    save: SaveConfig,
    record: FinetuneRecord | None,
) -> TrainingJob:
    label, files = plan.folder_label(spec), {}
    if save.predictions is not None:
        files = prediction_files(save.predictions, plan.task, label, seed, spec.test_languages)
    folder = file_name(f"{plan.task.name} {label} seed {seed}")
    return TrainingJob(
        name=f"{plan.task.name} {spec.title} seed {seed}",
        spec=spec,
        seed=seed,
        save_as=None if save.models is None else save.models / folder,
        prediction_files=files,
        record=None if record is None else replace(record, seed=seed),
    )


def _record(
    plan: FinetunePlan, spec: TrainingSpec, model: Path, fingerprint: str
) -> FinetuneRecord:
    return FinetuneRecord(
        model=str(model),
        fingerprint=fingerprint,
        task=plan.task.name,
        version=plan.task.version,
        scenario=plan.label(spec),
        seed=0,
        settings=asdict(plan.settings),
        train_data=files_fingerprint(plan.training_files(spec)),
    )


def _has_model(job: TrainingJob) -> bool:
    assert job.record is not None
    assert job.save_as is not None
    return job.record.in_folder(job.save_as, "--save-models") is not None


def _has_predictions(plan: FinetunePlan, job: TrainingJob) -> bool:
    """Whether all predictions to be saved are there, for the test data as it is now."""
    if not job.prediction_files:
        return True
    assert job.record is not None
    folder = next(iter(job.prediction_files.values())).parent
    found = job.record.in_folder(folder, "--save-predictions")
    return found is not None and all(
        file.exists() and found.test_data.get(code) == files_fingerprint(plan.test_files(code))
        for code, file in job.prediction_files.items()
    )
