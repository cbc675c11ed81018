"""What is asked of a fine-tuning: a scenario, whose settings, what is changed in them, seeds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isoglot.finetune.protocols import settings_for
from isoglot.finetune.scenarios import Plan, ScenarioConfig
from isoglot.tasks import FINE_TUNED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.finetune.settings import FinetuneConfig
    from isoglot.tasks.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Finetuning:
    """What to do with a model and a task."""

    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    """What is trained on and what is scored."""
    protocol: str = "xtreme"
    """Whose settings to use (`isoglot show protocols`)."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Settings to change in the protocol's, by name."""
    seeds: tuple[int, ...] = (0,)
    """One training each."""

    def settings(self, task: Task[Any, Any]) -> FinetuneConfig:
        """The settings for a task."""
        return replace(settings_for(self.protocol, task, self.scenario.name), **self.changes)

    def label(self, plan: Plan, task: Task[Any, Any], train_task: Task[Any, Any]) -> str:
        """How results name a training: all that sets its scores apart from others."""
        switched = plan.original is not None and self.settings(task).code_switch
        how = ["code-switched"] if switched else []
        how += [f"on {train_task.name}"] if train_task.name != task.name else []
        changed = [f"{name}={value}" for name, value in sorted(self.changes.items())]
        return ", ".join([plan.label, *how, self.protocol, *changed])

    def selection(self, tasks: Iterable[Task[Any, Any]]) -> str:
        """How epochs are chosen for these tasks: one rule, or the rules there are."""
        rules = (self.settings(task).selection for task in tasks if task.kind in FINE_TUNED)
        return ", ".join(dict.fromkeys(rules))
