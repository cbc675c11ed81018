"""The table of claims (`claims.yaml`) as Python: scores, checkpoints, arms, claims, their order.

A recipe is a name in `benchmarks/alignment/recipes`, or the path of a .yaml file from this folder.
In settings `<work>` stands for the folder of the study, and `<NAME>` for the model of checkpoint
NAME.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("claims.yaml")
RECIPES = Path(__file__).parents[1] / "alignment" / "recipes"
ROWS, SMALL_ROWS = 256, 48
"""Rows of a step, and of a step of PPA's arms, which take more of them."""
DEFAULT = "multilingual"
"""The checkpoint that an arm continues unless it names another."""
SCRATCH = "scratch"
"""The start of an arm that begins with random weights."""
CHECKPOINT, COUNTS = "checkpoint-", "counts-"
"""Beginnings of the names of preparations: a checkpoint, the counts of an arm's corpus."""


def recipe_file(recipe: str) -> Path:
    """The file of a recipe that is given by name or path."""
    if recipe.endswith(".yaml"):
        return (FILE.parent / recipe).resolve()
    return RECIPES / f"{recipe}.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind:
    """One of the scores of a cell."""

    label: str
    unit: str
    what: str
    lower_is_better: bool = False
    version: int = 1
    """Higher since its definition changed; values of other versions are left out."""
    digits: int = 1
    chance: float | None = None
    """Its value by guessing, unless cells tell it in `details`."""
    translation: bool = False
    """Of arms that translate; all others are of encoders."""

    @property
    def in_percent(self) -> bool:
        """May it be averaged with others?"""
        return "%" in self.unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A model that arms start from: a recipe, trained from random weights with seed 0."""

    recipe: str
    settings: tuple[str, ...] = ()
    corpus: str = "corpus"
    """Folder of the study's folder."""
    steps_share: float = 1.0
    """Steps, as a share of those of the default checkpoint."""

    @property
    def file(self) -> Path:
        """The recipe's file."""
        return recipe_file(self.recipe)

    def steps(self, default_steps: int) -> int:
        """Steps of this checkpoint where the default one takes `default_steps`."""
        return max(1, round(self.steps_share * default_steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPart:
    """The first steps of an arm, a run of their own with other settings."""

    share: float
    """Of the arm's steps."""
    settings: tuple[str, ...] = ()

    def steps(self, steps: int) -> tuple[int, int]:
        """Steps of this part and of the rest."""
        first = max(1, round(self.share * steps))
        return first, max(1, steps - first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A recipe and what differs from it."""

    recipe: str
    what: str
    settings: tuple[str, ...] = ()
    small_steps: bool = False
    """Steps of few pairs (PPA), as many tokens in all."""
    start: str = DEFAULT
    """The checkpoint it continues, or `scratch`."""
    corpus: str = "corpus"
    """Folder of the study's folder."""
    plus: str | None = None
    """A checkpoint whose number of steps is added to the arm's."""
    first: FirstPart | None = None
    counts: str | None = None
    """The arm whose counts of the corpus it reads, itself or another."""
    is_translation: bool = False
    """Does it train an encoder and a decoder, and is it scored by BLEU?"""
    cost: float | None = None
    """Time of a cell, in cells of the usual kind; none: by its steps."""

    @property
    def file(self) -> Path:
        """The recipe's file."""
        return recipe_file(self.recipe)

    @property
    def reads_knowledge(self) -> bool:
        """Is it an arm of XLM-K?"""
        return self.file.stem.startswith("k-")

    def steps(self, steps: int) -> int:
        """Steps of this arm where others take `steps`: as many rows; without those of `plus`."""
        return round(steps * ROWS / SMALL_ROWS) if self.small_steps else steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a paper says, and the contrasts of arms that test it."""

    paper: str
    claim: str
    change: str
    """What would change our mind."""
    tests: dict[str, dict[str, int]]
    """Test -> arm -> factor; the sum is above 0 if the claim holds."""
    differs: str = ""
    """What the test has otherwise than the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How a united recipe is chosen and tested."""

    seeds: tuple[int, ...]
    """Their development scores choose; the scores of other seeds are its test."""
    candidates: tuple[str, ...]
    rivals: tuple[str, ...]
    """The arms that it must beat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All of it."""

    scores: dict[str, ScoreKind]
    checkpoints: dict[str, Checkpoint]
    arms: dict[str, Arm]
    order: tuple[tuple[str, ...], ...]
    search: Search
    claims: tuple[Claim, ...]

    def cells(self, seeds: list[int], arms: list[str]) -> list[str]:
        """Cells as `ARM-SEED`, all seeds of a group of arms before the next group.

        Seeds of candidates that are not those of the search come last, unless `arms` are named.
        """
        groups = [tuple(arms)] if arms else self.order
        pairs = [(arm, seed) for group in groups for seed in seeds for arm in group]
        if not arms:
            pairs.sort(key=lambda pair: self._is_late(*pair))
        return [f"{arm}-{seed}" for arm, seed in pairs]

    def _is_late(self, arm: str, seed: int) -> bool:
        return arm in self.search.candidates and seed not in self.search.seeds

    def needs(self, arm: str) -> set[str]:
        """The checkpoints without which an arm cannot be trained."""
        one = self.arms[arm]
        told = (*one.settings, *(one.first.settings if one.first else ()))
        return {
            name
            for name in self.checkpoints
            if name == one.start or any(f"<{name}>" in setting for setting in told)
        }

    def steps(self, arm: str, steps: int, default_steps: int) -> int:
        """Steps of an arm, those of the checkpoint that it makes up for included."""
        one = self.arms[arm]
        more = self.checkpoints[one.plus].steps(default_steps) if one.plus else 0
        return one.steps(steps) + more


def _arm(said: dict[str, Any]) -> Arm:
    first = said.get("first")
    part = FirstPart(**_with_settings(first)) if first else None
    return Arm(**_with_settings(said) | {"first": part})


def _with_settings(said: dict[str, Any]) -> dict[str, Any]:
    """Settings as a tuple; a list among them (a YAML alias of shared ones) is taken apart."""
    flat: list[str] = []
    for one in said.get("settings", ()):
        flat += one if isinstance(one, list) else [one]
    return said | {"settings": tuple(flat)}


@cache
def read_table() -> Table:
    """Read `claims.yaml`, and refuse names that are not there."""
    said = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    checkpoints = {
        name: Checkpoint(**_with_settings(one)) for name, one in said["checkpoints"].items()
    }
    arms = {name: _arm(one) for name, one in said["arms"].items()}
    claims = tuple(Claim(**one) for one in said["claims"])
    search = Search(**{name: tuple(found) for name, found in said["search"].items()})
    order = tuple(tuple(group) for group in said["order"])
    tested = {arm for claim in claims for test in claim.tests.values() for arm in test}
    tested |= {*search.candidates, *search.rivals}
    for name in (*tested, *(arm for group in order for arm in group)):
        assert name in arms, f"{FILE}: there is no arm {name!r}"
    assert set(arms) == {arm for group in order for arm in group}, f"{FILE}: order lacks arms"
    assert DEFAULT in checkpoints
    for file in [one.file for one in arms.values()] + [one.file for one in checkpoints.values()]:
        assert file.is_file(), f"{FILE}: there is no recipe {file}"
    for arm in arms.values():
        assert arm.start in {*checkpoints, SCRATCH}, f"{FILE}: no checkpoint {arm.start!r}"
        assert arm.plus is None or arm.plus in checkpoints, f"{FILE}: no checkpoint {arm.plus!r}"
        assert arm.counts is None or arm.counts in arms, f"{FILE}: no arm {arm.counts!r}"
    return Table(
        scores={name: ScoreKind(**one) for name, one in said["scores"].items()},
        checkpoints=checkpoints,
        arms=arms,
        order=order,
        search=search,
        claims=claims,
    )
