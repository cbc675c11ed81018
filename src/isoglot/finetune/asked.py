"""What is asked of a fine-tuning: a scenario, whose settings, what is changed in them, seeds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isoglot.finetune.protocols import settings_for
from isoglot.finetune.scenarios import ScenarioConfig

if TYPE_CHECKING:
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
