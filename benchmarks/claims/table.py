"""The table of claims (`claims.yaml`) as Python: scores, arms, claims, and the order of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("claims.yaml")
RECIPES = Path(__file__).parents[1] / "alignment" / "recipes"
ROWS, SMALL_ROWS = 256, 48
"""Rows of a step, and of a step of PPA's arms, which take more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind:
    """One of the scores of a cell."""

    label: str
    unit: str
    what: str
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A recipe of the alignment study, and what differs from it."""

    recipe: str
    what: str
    settings: tuple[str, ...] = ()
    small_steps: bool = False
    """Steps of few pairs (PPA), as many tokens in all."""

    @property
    def file(self) -> Path:
        """The recipe's file."""
        return RECIPES / f"{self.recipe}.yaml"

    def steps(self, steps: int) -> int:
        """Steps of this arm where others take `steps`: as many rows."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All of it."""

    scores: dict[str, ScoreKind]
    arms: dict[str, Arm]
    order: tuple[tuple[str, ...], ...]
    claims: tuple[Claim, ...]
    stage0: Arm

    def cells(self, seeds: list[int], arms: list[str]) -> list[str]:
        """Cells as `ARM-SEED`, all seeds of a group of arms before the next group."""
        groups = [tuple(arms)] if arms else self.order
        return [f"{arm}-{seed}" for group in groups for seed in seeds for arm in group]


@cache
def read_table() -> Table:
    """Read `claims.yaml`, and refuse names that are not there."""
    said = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    arms = {
        name: Arm(**one | {"settings": tuple(one.get("settings", ()))})
        for name, one in said["arms"].items()
    }
    claims = tuple(Claim(**one) for one in said["claims"])
    order = tuple(tuple(group) for group in said["order"])
    tested = {arm for claim in claims for test in claim.tests.values() for arm in test}
    for name in (*tested, *(arm for group in order for arm in group)):
        assert name in arms, f"{FILE}: there is no arm {name!r}"
    assert set(arms) == {arm for group in order for arm in group}, f"{FILE}: order lacks arms"
    assert all(arm.file.is_file() for arm in arms.values())
    stage0 = said["stage0"]
    return Table(
        scores={name: ScoreKind(**one) for name, one in said["scores"].items()},
        arms=arms,
        order=order,
        claims=claims,
        stage0=Arm(recipe=Path(stage0["recipe"]).stem, what="", settings=tuple(stage0["settings"])),
    )
