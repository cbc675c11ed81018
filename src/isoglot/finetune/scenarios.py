"""Scenarios: on which languages a model is trained, and on which it is then scored.

| scenario | trained on | one training for |
|---|---|---|
| zero-shot | the source language | each source |
| translate-train | the source's training data, translated into the target | each target |
| translate-train-all | the source's training data in all languages | all |
| pooled | every language's own training data | all |
| supervised | the target's own training data | each target |

Several sources give every transfer direction (MetaXLM, Figure 6). The translate scenarios demand
that rows carry their original's id, and refuse data that are no translations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from isoglot.errors import CorpusError, nearest, require
from isoglot.tasks.subsets import is_wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

Scenario = Literal["zero-shot", "translate-train", "translate-train-all", "pooled", "supervised"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
TRANSLATED: tuple[Scenario, ...] = ("translate-train", "translate-train-all")
TRANSFERRED: tuple[Scenario, ...] = ("zero-shot", *TRANSLATED)
"""Those that start from the source language's training data."""
JOINED: tuple[Scenario, ...] = ("translate-train-all", "pooled")
"""Those that train on all languages' data together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioConfig:
    """A scenario and its languages."""

    name: Scenario = "zero-shot"
    """What is trained on: one language, translations of its data, or every language's own data."""
    sources: tuple[str, ...] = ("en",)
    """Languages to transfer from, one training each; of translations, the original's (one)."""
    targets: tuple[str, ...] | None = None
    """Languages to score, of those that the task has files of; none: all of them."""
    trained: tuple[str, ...] | None = None
    """Joined data: languages to train on, of those that there is data of; none: all of them."""

    def __post_init__(self) -> None:
        # a name may come from a command line, unchecked
        require(
            self.name in SCENARIOS,
            f"there is no scenario {self.name!r}: {nearest(self.name, SCENARIOS)}",
        )
        require(len(self.sources) >= 1, "a scenario needs a source language")
        require(
            self.name not in TRANSLATED or len(self.sources) == 1,
            f"{self.name} has one language of originals: give one source",
        )
        require(
            self.trained is None or self.name in JOINED,
            f"{self.name} joins no languages to train on: choose --train-languages only with the "
            f"scenario {' or '.join(JOINED)}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One training and what it is scored on."""

    label: str
    """How results name it."""
    train: tuple[str, ...]
    score: tuple[str, ...]
    original: str | None = None
    """The language that the training data were translated from, if they were."""

    @property
    def title(self) -> str:
        """The label, with the language where the scenario has a training for each."""
        one_of_many = len(self.train) == 1 and not self.label.endswith(self.train[0])
        return f"{self.label} {self.train[0]}" if one_of_many else self.label


def plans(
    config: ScenarioConfig, *, trainable: Sequence[str], scorable: Sequence[str], task: str
) -> list[Plan]:
    """The trainings of a scenario.

    Args:
        config: the scenario.
        trainable: languages with training data.
        scorable: languages with data to score.
        task: for messages.
    """
    targets = tuple(language for language in scorable if is_wanted(language, config.targets))
    if not targets:
        raise CorpusError(
            f"{task} has nothing to score in {', '.join(config.targets or ())}: there is data in "
            f"{', '.join(scorable)}."
        )
    if config.name == "zero-shot":
        _check_sources(config.sources, trainable, task)
        return [
            Plan(label=f"zero-shot from {source}", train=(source,), score=targets)
            for source in config.sources
        ]
    original = config.sources[0] if config.name in TRANSLATED else None
    if config.name in JOINED:
        train = tuple(code for code in trainable if code in (config.trained or trainable))
        if not train:
            raise CorpusError(
                f"{task} has no training data in {', '.join(config.trained or ())}: there is some "
                f"in {', '.join(trainable)}."
            )
        return [Plan(label=config.name, train=train, score=targets, original=original)]
    both = [language for language in targets if language in trainable]
    if not both:
        raise CorpusError(
            f"{config.name} needs a language that {task} can be both trained on and scored in: "
            f"there is training data in {', '.join(trainable)}, and data to score in "
            f"{', '.join(targets)}."
        )
    return [
        Plan(label=config.name, train=(target,), score=(target,), original=original)
        for target in both
    ]


def _check_sources(sources: Sequence[str], trainable: Sequence[str], task: str) -> None:
    for language in sources:
        if language not in trainable:
            raise CorpusError(
                f"{task} has no training data in {language!r}; {nearest(language, trainable)}"
            )
