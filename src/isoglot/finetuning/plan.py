"""The plan of a fine-tuning: training languages, test languages and the labels of its results.

    task, data folder, request --(which files exist?)--> TrainingSpec, one for each model to train

A plan lists files and reads neither examples nor models, so errors in files and options are
reported before the first training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError, IsoglotError, require
from isoglot.finetuning.protocols import settings_for
from isoglot.finetuning.settings import FROM_SOURCE, MULTILINGUAL, TRANSLATED
from isoglot.languages import find, is_pair
from isoglot.tasks import FINE_TUNED_KINDS, find_task
from isoglot.tasks.base import name_folders
from isoglot.tasks.data_files import files_fingerprint
from isoglot.tasks.language_sets import is_selected
from isoglot.tasks.unread import missing_note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
    from isoglot.tasks.base import DataFolders, Split, Task

TRAINED_ON = {"mlqa": "squad", "xquad": "squad", "esxnli": "xnli", "xcopa": "copa"}
"""Task -> the task that papers train on, where it has no data in the source language."""

ScoreKey = tuple[str, int, str, str]
"""Identity of a score but for its seed and metric: task, version, scenario, language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """One model to train, and the languages it is scored in."""

    label: str
    """The scenario, as results name it."""
    train_languages: tuple[str, ...]
    test_languages: tuple[str, ...]
    original_language: str | None = None
    """The language that the training data were translated from, in translate scenarios."""

    @property
    def title(self) -> str:
        """The label, with the training language where the scenario trains one model for each."""
        first = self.train_languages[0]
        is_one_of_many = len(self.train_languages) == 1 and not self.label.endswith(first)
        return f"{self.label} {first}" if is_one_of_many else self.label


class FinetunePlan:
    """The trainings of one task."""

    def __init__(
        self,
        task: Task[Any, Any],
        data_folder: DataFolders,
        request: FinetuneRequest,
        train_task: Task[Any, Any] | None = None,
    ) -> None:
        """Find the task's files; `train_task` is the task whose training and dev data are used.

        Without a `train_task` it is the task itself, or the one in `TRAINED_ON`.
        """
        if task.kind not in FINE_TUNED_KINDS:
            raise IsoglotError(
                f"{task.name} is scored without training. Use isoglot evaluate instead."
            )
        self.task, self.data_folder, self.request = task, data_folder, request
        self.folders = name_folders(data_folder)
        self.train_task = train_task or self._default_train_task()
        if self.train_task.kind != task.kind:
            raise IsoglotError(
                f"{task.name} cannot be trained on {self.train_task.name}: their kinds differ "
                f"({task.kind} and {self.train_task.kind})."
            )
        self.settings = settings_for(request, task)
        require(
            not request.changes.get("code_switch") or request.scenario.name in TRANSLATED,
            f"code_switch: the scenario {request.scenario.name} has no translated training data to "
            f"mix with its originals. Use {' or '.join(sorted(TRANSLATED))}, or leave it out.",
        )
        parts = task.splits_in(data_folder)
        self.test_split: Split = "test" if any(part.name == "test" for part in parts) else "dev"
        self.test_languages = _languages(task, data_folder, self.test_split)
        train_languages = _languages(self.train_task, data_folder, "train")
        if not self.test_languages:
            raise CorpusError(
                f"{self.folders} has no files of {task.name} to score. docs/tasks.md lists the "
                f"paths of each task's files. {missing_note(task, data_folder)}".rstrip()
            )
        if not train_languages:
            raise CorpusError(
                f"{self.folders} has no files of {self.train_task.name} to train on. docs/tasks.md "
                "lists the paths of each task's files; --train-on names another task to train on. "
                f"{missing_note(self.train_task, data_folder)}".rstrip()
            )
        self.trainings = training_specs(
            request.scenario,
            train_languages=train_languages,
            test_languages=self.test_languages,
            task=task.name,
        )
        self._check_selection()

    def label(self, spec: TrainingSpec) -> str:
        """The scenario of a training in results: everything that distinguishes its scores."""
        _, dev_languages = self.selection_data(spec)
        all_languages = set(_single(self.test_languages))
        pools_some = self.request.scenario.name in MULTILINGUAL and all_languages != set(
            spec.train_languages
        )
        parts = [spec.label + (f" on {_joined(spec.train_languages)}" if pools_some else "")]
        if spec.original_language is not None and self.settings.code_switch:
            parts.append("code-switched")
        if self.train_task.name != self.task.name:
            parts.append(f"on {self.train_task.name}")
        parts.append(self.request.protocol)
        parts += [f"{name}={value}" for name, value in sorted(self.request.changes.items())]
        if self.settings.selection == "all-dev" and set(dev_languages) != all_languages:
            parts.append(f"chosen on {_joined(dev_languages)}")
        return ", ".join(parts)

    def folder_label(self, spec: TrainingSpec) -> str:
        """The label with the training language, where the scenario trains one model for each."""
        return spec.title + self.label(spec).removeprefix(spec.label)

    def score_keys(self, spec: TrainingSpec) -> set[ScoreKey]:
        """The keys of a training's scores, for any seed."""
        task, label = self.task, self.label(spec)
        return {(task.name, task.version, label, language) for language in spec.test_languages}

    def selection_data(self, spec: TrainingSpec) -> tuple[Task[Any, Any], Sequence[str]]:
        """The task and the languages whose dev data select the epoch.

        Pairs of a question's and a context's language are left out where single languages exist.
        """
        if self.settings.selection == "last":
            return self.train_task, ()
        if self.settings.selection == "source-dev":
            return self.train_task, spec.train_languages
        task = self.task if self.test_split == "test" else self.train_task
        return task, _single(spec.test_languages) or spec.test_languages

    def training_files(self, spec: TrainingSpec) -> list[Path]:
        """The files of a training: its examples, the originals, and the dev data that select."""
        languages = {*spec.train_languages, *filter(None, (spec.original_language,))}
        parts: list[tuple[Task[Any, Any], str, Split]] = [
            (self.train_task, language, "train") for language in sorted(languages)
        ]
        dev_task, dev_languages = self.selection_data(spec)
        parts += [(dev_task, language, "dev") for language in dev_languages]
        return [file for part in parts for file in self._files(*part)]

    def test_files(self, language: str) -> tuple[Path, ...]:
        """The files of a language that is scored."""
        return self._files(self.task, language, self.test_split)

    def data_hash(self, spec: TrainingSpec, language: str) -> str:
        """A hash of the files of a training, and of those that it is scored on in a language."""
        return files_fingerprint([*self.training_files(spec), *self.test_files(language)])[:16]

    def _files(self, task: Task[Any, Any], language: str, split: Split) -> tuple[Path, ...]:
        return task.find_split(self.data_folder, language, split).files

    def _default_train_task(self) -> Task[Any, Any]:
        """The task itself where it has training data in the source language, or the papers'."""
        other = TRAINED_ON.get(self.task.name)
        if other is None or self.request.scenario.name not in FROM_SOURCE:
            return self.task
        own = _languages(self.task, self.data_folder, "train")
        return self.task if set(own) & set(self.request.scenario.sources) else find_task(other)

    def _check_selection(self) -> None:
        """Refuse to select without dev data, or to select and score on the same data."""
        rule = self.settings.selection
        if self.test_split == "dev" and rule != "last" and self.train_task.name == self.task.name:
            raise CorpusError(
                f"{self.folders} has no test part of {self.task.name}, so its dev part would "
                "both select the model and score it. Add --selection last."
            )
        for spec in self.trainings:
            task, languages = self.selection_data(spec)
            with_dev = _languages(task, self.data_folder, "dev")
            missing = [language for language in languages if language not in with_dev]
            if missing:
                raise CorpusError(
                    f"{self.folders} has no dev part of {task.name} for {', '.join(missing)}, "
                    f"which --selection {rule} needs. Add --selection last."
                )


def training_specs(
    scenario: ScenarioConfig,
    *,
    train_languages: Sequence[str],
    test_languages: Sequence[str],
    task: str,
) -> list[TrainingSpec]:
    """The trainings of a scenario, from the languages that `task` has training and test data in."""
    targets = tuple(code for code in test_languages if is_selected(code, scenario.targets))
    if not targets:
        raise CorpusError(
            f"{task} has nothing to score in {', '.join(scenario.targets or ())}: it has test data "
            f"in {', '.join(test_languages)}."
        )
    trainings: list[tuple[str, tuple[str, ...], tuple[str, ...]]]
    if scenario.name == "zero-shot":
        trainings = []
        for source in scenario.sources:
            code = find(source, train_languages)
            if code is None:
                raise CorpusError(
                    f"{task} has no training data in {source!r}: it has training data in "
                    f"{', '.join(train_languages)}. Name one of them with --source, or another "
                    "task to train on with --train-on."
                )
            trainings.append((f"zero-shot from {code}", (code,), targets))
    elif scenario.name in MULTILINGUAL:
        wanted = scenario.train_languages or train_languages
        pooled = tuple(code for code in train_languages if find(code, wanted) is not None)
        trainings = [(scenario.name, pooled, targets)]
        if not pooled:
            raise CorpusError(
                f"{task} has no training data in {', '.join(wanted)}: it has training data in "
                f"{', '.join(train_languages)}."
            )
    else:
        both = [code for code in targets if code in train_languages]
        trainings = [(scenario.name, (code,), (code,)) for code in both]
        if not both:
            raise CorpusError(
                f"{scenario.name} needs a language with both training and test data of {task}: "
                f"there is training data in {', '.join(train_languages)}, and test data in "
                f"{', '.join(targets)}."
            )
    source = scenario.sources[0]
    original = (find(source, train_languages) or source) if scenario.name in TRANSLATED else None
    return [
        TrainingSpec(
            label=label, train_languages=train, test_languages=test, original_language=original
        )
        for label, train, test in trainings
    ]


def _languages(task: Task[Any, Any], data: DataFolders, split: Split) -> list[str]:
    return [part.language for part in task.splits_in(data) if part.name == split]


def _single(languages: Sequence[str]) -> list[str]:
    """The entries that are one language, not a pair of a question's and its context's."""
    return [language for language in languages if not is_pair(language)]


def _joined(languages: Sequence[str]) -> str:
    return " ".join(sorted(languages))
