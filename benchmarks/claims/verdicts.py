"""Differences between arms with their intervals, verdicts on claims, and the choice of a recipe.

    cells -> arm -> seed -> scores -> contrasts by seed -> which count (Holm) -> verdicts

A test is a contrast of arms, computed for each seed from cells whose checkpoints of one name have
the same weights. Its intervals are Student's, 95 %, over seeds. A difference counts if Holm's
procedure (1979) over the scores of its test rejects at 5 %, and if some arm of the test is above
the chance level of the score. Only results that exist are used, and of a score only values of its
present version.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from benchmarks.claims.checkpoints import fingerprints_of
from benchmarks.claims.table import Claim, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIN_SEEDS = 3
"""Fewer give no interval."""
ALPHA = 0.05
NOT_RUN, TOO_FEW, OPEN = "not run", "too few seeds", "open"
"""Beginnings of verdicts of what has not been tested."""
HOLDS, IN_PART, MIXED, OPPOSITE, NOT_SEEN = (
    "holds",
    "holds in part",
    "mixed",
    "the opposite",
    "not seen at this size",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A contrast of arms in one score, positive if it supports the claim."""

    by_seed: tuple[float, ...]
    is_chance: bool = False
    """Is none of the arms above the chance level of the score?"""

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return fmean(self.by_seed)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % over seeds; none for fewer than three."""
        return interval(self.by_seed)

    @property
    def p_value(self) -> float | None:
        """Of Student's test, two-sided, that the mean is 0; none for fewer than three seeds."""
        return p_value(self.by_seed)


@cache  # the page is written again after every cell
def p_value(values: tuple[float, ...]) -> float | None:
    """Of Student's test, two-sided, that a mean is 0; none for fewer than three values."""
    from scipy.special import stdtr

    if len(values) < MIN_SEEDS:
        return None
    error = stdev(values) / len(values) ** 0.5
    if error == 0:
        return float(fmean(values) == 0)
    return float(2 * stdtr(len(values) - 1, -abs(fmean(values)) / error))


@cache
def interval(values: tuple[float, ...]) -> tuple[float, float] | None:
    """Student's 95 % interval of a mean; none for fewer than three values."""
    from scipy.special import stdtrit

    if len(values) < MIN_SEEDS:
        return None
    half = float(stdtrit(len(values) - 1, 1 - ALPHA / 2)) * stdev(values) / len(values) ** 0.5
    return fmean(values) - half, fmean(values) + half


def rejected(p_values: Mapping[str, float]) -> set[str]:
    """Holm's procedure: the hypotheses that are rejected, with 5 % for a mistake in any."""
    found: set[str] = set()
    for place, name in enumerate(sorted(p_values, key=lambda one: p_values[one])):
        if p_values[name] > ALPHA / (len(p_values) - place):
            break
        found.add(name)
    return found


class Verdicts:
    """The results of all cells, read by claim."""

    def __init__(self, cells: dict[str, dict[str, Any]], about: dict[str, Any]) -> None:
        self.table, self.about = read_table(), about
        self.values: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
        """Arm -> seed -> scores."""
        self.development: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
        """Arm -> seed -> development scores."""
        self.chance: dict[str, float] = {
            score: kind.chance
            for score, kind in self.table.scores.items()
            if kind.chance is not None
        }
        self._weights: dict[tuple[str, int], dict[str, str]] = {}
        """(arm, seed) -> checkpoint -> fingerprint."""
        for cell in cells.values():
            if cell["arm"] in self.table.arms:  # an arm of an earlier table is in the file alone
                self._add(cell)

    def _add(self, cell: dict[str, Any]) -> None:
        arm, seed, versions = cell["arm"], cell["seed"], cell.get("versions", {})
        self.values[arm][seed] = {
            score: value
            for score, value in cell["scores"].items()
            if score in self.table.scores
            and versions.get(score, 1) == self.table.scores[score].version
        }
        self.development[arm][seed] = {
            score: value
            for score, value in cell.get("development", {}).items()
            if score in self.values[arm][seed]
        }
        self._weights[arm, seed] = fingerprints_of(cell)
        for score in self.values[arm][seed]:
            told = cell.get("details", {}).get(f"{score} chance")
            if told is not None:
                self.chance[score] = told

    def difference(
        self, contrast: Mapping[str, int], score: str, seeds: Iterable[int] | None = None
    ) -> Difference | None:
        """A contrast over the seeds that all of its arms have; none: there is no such seed."""
        sign = -1 if self.table.scores[score].lower_is_better else 1
        of = self.values
        used = [
            seed
            for seed in self._seeds([*contrast], seeds)
            if all(score in of[arm][seed] for arm in contrast)
        ]
        if not used:
            return None
        return Difference(
            by_seed=tuple(
                sign * sum(factor * of[arm][seed][score] for arm, factor in contrast.items())
                for seed in used
            ),
            is_chance=not any(
                self._is_above_chance(score, [of[arm][seed][score] for seed in used])
                for arm in contrast
            ),
        )

    def _is_above_chance(self, score: str, values: list[float]) -> bool:
        """Is the lower end of the interval (of too few seeds, the mean) above chance?"""
        ends = interval(tuple(values))
        least = fmean(values) if ends is None else ends[0]
        return score not in self.chance or least > self.chance[score]

    def _seeds(self, arms: list[str], seeds: Iterable[int] | None = None) -> list[int]:
        """Seeds that all the arms have, with checkpoints of the same weights."""
        common = set.intersection(*(set(self.values.get(arm, {})) for arm in arms))
        if seeds is not None:
            common &= {*seeds}
        return [seed for seed in sorted(common) if self._compare(arms, seed)]

    def _compare(self, arms: list[str], seed: int) -> bool:
        used = {pair for arm in arms for pair in self._weights[arm, seed].items()}
        return len(used) == len({name for name, _ in used})

    def differences(
        self, contrast: Mapping[str, int], seeds: Iterable[int] | None = None
    ) -> dict[str, Difference]:
        """Score -> the contrast in it, where there is one."""
        kept = None if seeds is None else [*seeds]
        found = {score: self.difference(contrast, score, kept) for score in self.table.scores}
        return {score: one for score, one in found.items() if one is not None}

    def signs(self, differences: Mapping[str, Difference]) -> dict[str, int]:
        """Score -> 1: counts for the claim; -1: against it; 0: neither; without those of chance
        and those with too few seeds."""
        tested = {
            score: p_value
            for score, one in differences.items()
            if not one.is_chance and (p_value := one.p_value) is not None
        }
        counted = rejected(tested)
        return {
            score: (1 if differences[score].mean > 0 else -1) if score in counted else 0
            for score in tested
        }

    def test_verdict(self, contrast: Mapping[str, int]) -> str:
        """The verdict of one test."""
        present = self.differences(contrast)
        if not present:
            return NOT_RUN
        most = max(len(one.by_seed) for one in present.values())
        if most < MIN_SEEDS:
            return f"{TOO_FEW} ({most})"
        signs = [*self.signs(present).values()]
        if not signs:
            return NOT_SEEN
        if min(signs) >= 0 and 2 * signs.count(1) >= len(signs):
            return HOLDS
        if max(signs) <= 0 and 2 * signs.count(-1) >= len(signs):
            return OPPOSITE
        if 1 in signs:
            return IN_PART if signs.count(1) > signs.count(-1) else MIXED
        return NOT_SEEN

    def verdict(self, claim: Claim) -> str:
        """The verdict of a claim: that of all its tests."""
        found = [self.test_verdict(test) for test in claim.tests.values()]
        done = [one for one in found if one != NOT_RUN and not one.startswith(TOO_FEW)]
        if not done:
            return next((one for one in found if one != NOT_RUN), NOT_RUN)
        if len(done) < len(found):
            return f"{OPEN}: {len(done)} of {len(found)} tests run"
        if len(set(done)) == 1:
            return done[0]
        if {HOLDS, IN_PART}.isdisjoint(done):
            return MIXED if MIXED in done else NOT_SEEN
        return IN_PART

    def num_seeds(self, claim: Claim) -> int | None:
        """The fewest seeds of its tests; none unless all have been run."""
        found = [self.differences(test) for test in claim.tests.values()]
        if not all(found):
            return None
        return min(max(len(one.by_seed) for one in of_test.values()) for of_test in found)

    def development_means(self) -> dict[str, tuple[float, int]]:
        """Candidate -> gain over the control in development scores, and seeds; best first.

        The mean over scores of the differences in percentage points, positive where better, over
        the seeds of the search that both have.
        """
        search, found = self.table.search, {}
        (control, *_) = search.rivals
        for arm in (*search.candidates, *search.rivals[1:]):
            gains = []
            for seed in self._seeds([arm, control], search.seeds):
                own, other = self.development[arm][seed], self.development[control][seed]
                points = [
                    (other[score] - own[score])
                    if self.table.scores[score].lower_is_better
                    else (own[score] - other[score])
                    for score in own
                    if score in other
                ]
                gains += [fmean(points)] if points else []
            if gains:
                found[arm] = fmean(gains), len(gains)
        return dict(sorted(found.items(), key=lambda one: -one[1][0]))

    def chosen(self) -> str | None:
        """The candidate with the best development scores, among those with all search seeds."""
        search = self.table.search
        of_all = [
            arm
            for arm, (_, seeds) in self.development_means().items()
            if arm in search.candidates and seeds == len(search.seeds)
        ]
        return of_all[0] if of_all else None

    def test_seeds(self) -> list[int]:
        """The seeds that have chosen nothing."""
        seeds = {seed for of_arm in self.values.values() for seed in of_arm}
        return sorted(seeds - {*self.table.search.seeds})

    def rivals(self, chosen: str) -> dict[str, dict[str, int]]:
        """Rival -> the contrast of the chosen recipe with it, where it has been tested."""
        found = {
            rival: {chosen: 1, rival: -1} for rival in self.table.search.rivals if rival != chosen
        }
        return {
            rival: contrast
            for rival, contrast in found.items()
            if self.differences(contrast, self.test_seeds())
        }

    def mean_difference(self, contrast: Mapping[str, int], seeds: Iterable[int]) -> Difference:
        """The mean over the scores that most seeds have, in percentage points, by seed."""
        found = {
            score: one
            for score, one in self.differences(contrast, seeds).items()
            if self.table.scores[score].in_percent
        }
        most = max(len(one.by_seed) for one in found.values())
        columns = [one.by_seed for one in found.values() if len(one.by_seed) == most]
        return Difference(by_seed=tuple(map(fmean, zip(*columns, strict=True))))

    def beats(self, contrast: Mapping[str, int]) -> str:
        """Does the chosen recipe beat a rival: better in the mean, and worse in no score?"""
        seeds = self.test_seeds()
        mean = self.mean_difference(contrast, seeds)
        if mean.interval is None:
            return f"{TOO_FEW} ({len(mean.by_seed)})"
        worse = [
            self.table.scores[score].label
            for score, sign in self.signs(self.differences(contrast, seeds)).items()
            if sign < 0
        ]
        if mean.interval[0] <= 0:
            return "no"
        return f"not in {', '.join(worse)}" if worse else "yes"
