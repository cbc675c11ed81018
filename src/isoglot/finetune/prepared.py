"""A fine-tuning before it begins: what it trains on, what it scores, what its results are called.

    task, folder, what is asked --(which files are there?)--> plans, labels, cells

Reads no example and no model, so all that files and options can have wrong is said at once, before
the first minute of training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.averaging import is_pair
from isoglot.errors import CorpusError, IsoglotError
from isoglot.finetune.scenarios import JOINED, TRANSFERRED, plans
from isoglot.tasks import FINE_TUNED, find_task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.finetune.asked import Finetuning
    from isoglot.finetune.scenarios import Plan
    from isoglot.tasks.base import Split, Task

TRAINED_ON = {"mlqa": "squad", "xquad": "squad", "esxnli": "xnli", "xcopa": "copa"}
"""Task -> the one that papers train for it, where it has no data in the source language."""

Cell = tuple[str, int, str, str]
"""What a score is of: task, version, scenario, language."""


class Prepared:
    """The plans of one task."""

    def __init__(
        self,
        task: Task[Any, Any],
        data_folder: Path,
        asked: Finetuning,
        train_task: Task[Any, Any] | None = None,
    ) -> None:
        """Find the task's files.

        Args:
            task: what to score on.
            data_folder: where the tasks' files lie.
            asked: scenario, settings and seeds.
            train_task: whose training and dev data to use; none: the task's own, or what
                `TRAINED_ON` says.

        Raises:
            IsoglotError: the task is not fine-tuned, files are missing, or the selection rule
                cannot be followed.
        """
        if task.kind not in FINE_TUNED:
            raise IsoglotError(
                f"{task.name} reads a model as it is, nothing is trained for it. Use isoglot "
                "evaluate."
            )
        self.task, self.data_folder, self.asked = task, data_folder, asked
        self.train_task = train_task or self._usual_train_task()
        if self.train_task.kind != task.kind:
            raise IsoglotError(
                f"{task.name} cannot be trained on {self.train_task.name}: the one is a task of "
                f"the kind {task.kind}, the other {self.train_task.kind}."
            )
        self.settings = asked.settings(task)
        parts = task.parts(data_folder)
        self.split: Split = "test" if any(part.split == "test" for part in parts) else "dev"
        self.scorable = [part.language for part in parts if part.split == self.split]
        trainable = _languages(self.train_task, data_folder, "train")
        self._check_files(trainable)
        self.plans = plans(
            asked.scenario, trainable=trainable, scorable=self.scorable, task=task.name
        )
        self._check_selection()

    def label(self, plan: Plan) -> str:
        """How results name a training: all that sets its scores apart from others."""
        _, judged = self.judged_on(plan)
        every = _single(self.scorable)
        trained = self.asked.scenario.name in JOINED and set(plan.train) != set(every)
        how = [plan.label + (f" on {' '.join(sorted(plan.train))}" if trained else "")]
        if plan.original is not None and self.settings.code_switch:
            how.append("code-switched")
        if self.train_task.name != self.task.name:
            how.append(f"on {self.train_task.name}")
        how.append(self.asked.protocol)
        how += [f"{name}={value}" for name, value in sorted(self.asked.changes.items())]
        if self.settings.selection == "all-dev" and set(judged) != set(every):
            how.append(f"chosen on {' '.join(sorted(judged))}")
        return ", ".join(how)

    def cells(self, plan: Plan) -> set[Cell]:
        """What the scores of a plan are of, with any seed."""
        label = self.label(plan)
        return {(self.task.name, self.task.version, label, language) for language in plan.score}

    def judged_on(self, plan: Plan) -> tuple[Task[Any, Any], Sequence[str]]:
        """The task and the languages whose dev parts the selection rule looks at.

        A question in one language on a context in another judges nothing, where there is more.
        """
        if self.settings.selection == "last":
            return self.train_task, ()
        if self.settings.selection == "source-dev":
            return self.train_task, plan.train
        judge = self.task if self.split == "test" else self.train_task
        return judge, _single(plan.score) or plan.score

    def _usual_train_task(self) -> Task[Any, Any]:
        """The task itself where it has what the scenario wants, or the papers' choice."""
        other = TRAINED_ON.get(self.task.name)
        if other is None or self.asked.scenario.name not in TRANSFERRED:
            return self.task
        own = _languages(self.task, self.data_folder, "train")
        return self.task if set(own) & set(self.asked.scenario.sources) else find_task(other)

    def _check_files(self, trainable: Sequence[str]) -> None:
        if not self.scorable:
            raise CorpusError(
                f"{self.data_folder} has no files of {self.task.name} to score. docs/evaluate.md "
                "shows where they are looked for."
            )
        if not trainable:
            raise CorpusError(
                f"{self.data_folder} has no files of {self.train_task.name} to train on. "
                "docs/evaluate.md shows where they are looked for; --train-on names another task "
                "to train on."
            )

    def _check_selection(self) -> None:
        """Refuse to choose without dev data, or to choose and score on the same."""
        rule = self.settings.selection
        if self.split == "dev" and rule != "last" and self.train_task.name == self.task.name:
            raise CorpusError(
                f"{self.data_folder} has no test part of {self.task.name}: its dev part would both "
                "choose the model and score it. Add --selection last."
            )
        for plan in self.plans:
            judge, languages = self.judged_on(plan)
            has_dev = _languages(judge, self.data_folder, "dev")
            without = [language for language in languages if language not in has_dev]
            if without:
                raise CorpusError(
                    f"{self.data_folder} has no dev part of {judge.name} for {', '.join(without)}, "
                    f"which --selection {rule} needs. Add --selection last."
                )


def _languages(task: Task[Any, Any], folder: Path, split: Split) -> list[str]:
    return [part.language for part in task.parts(folder) if part.split == split]


def _single(languages: Sequence[str]) -> list[str]:
    """Those that are one language, not a question's and its context's."""
    return [language for language in languages if not is_pair(language)]
