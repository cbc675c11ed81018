"""The findings as one HTML file, which needs no other file and no script.

    html_page(Findings(cells, about), date="2026-11-18") -> text

It has what docs/findings.md has, and forest plots of all differences by score. Style sheet, colors
and number formats are those of `isoglot.report`; the template is findings.html.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.claims.checkpoints import checkpoints_in
from benchmarks.claims.findings import INTRO, RULES, Findings, spread
from benchmarks.claims.forest import Row, forest_svg
from benchmarks.claims.verdicts import (
    HOLDS,
    IN_PART,
    MIXED,
    NOT_RUN,
    NOT_SEEN,
    OPPOSITE,
    Difference,
)
from isoglot.report.page import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.claims.table import Claim

TITLE = "Which claims of cross-lingual pre-training hold?"
KINDS = {HOLDS: "better", IN_PART: "partly", MIXED: "partly", OPPOSITE: "worse", NOT_SEEN: "same"}
"""Verdict -> its class in the style sheet; others are open."""
_INLINE = (
    (r"\*\*(.+?)\*\*", r"<b>\1</b>"),
    (r"`(.+?)`", r"<code>\1</code>"),
    (r"(?<![\w*])\*(?!\s)(.+?)\*", r"<i>\1</i>"),
)


def html_page(findings: Findings, *, date: str) -> str:
    """The page; `date` is that of the results."""
    claims = [
        _claim(findings, number, claim)
        for number, claim in enumerate(findings.table.claims, start=1)
    ]
    counted = Counter(claim["verdict"] for claim in claims if claim["kind"] != "open")
    intro = INTRO.partition("-->")[2]
    return render(
        "findings.html",
        TITLE,
        folder=Path(__file__).parent,
        languages={},
        date=date,
        claims=claims,
        counted=counted.most_common(),
        num_open=sum(claim["kind"] == "open" for claim in claims),
        intro=list(paragraphs(intro)),
        rules=list(paragraphs(RULES)),
        figures=list(_figures(findings)),
        united=_united(findings),
        united_rule=findings.united_rule(),
        arms=list(_arms(findings)),
        missing=[arm for arm in findings.table.arms if not findings.values.get(arm)],
        scores=[
            (kind, findings.chance.get(score)) for score, kind in findings.table.scores.items()
        ],
        about=findings.about,
        checkpoints=list(_checkpoints(findings)),
        num_cells=sum(map(len, findings.values.values())),
        fingerprint=results_fingerprint(findings),
    )


def results_fingerprint(findings: Findings) -> str:
    """Of all values that the page was made from."""
    told = json.dumps(
        {arm: findings.values[arm] for arm in sorted(findings.values)}, sort_keys=True
    )
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def paragraphs(markdown: str) -> Iterator[str]:
    """Paragraphs of Markdown with bold, italics and code, as HTML."""
    from markupsafe import escape

    for paragraph in markdown.strip().split("\n\n"):
        html = str(escape(" ".join(paragraph.split())))
        for pattern, told in _INLINE:
            html = re.sub(pattern, told, html)
        yield html


def _claim(findings: Findings, number: int, claim: Claim) -> dict[str, Any]:
    verdict = findings.verdict(claim)
    shown = {
        name: found for name, test in claim.tests.items() if (found := findings.differences(test))
    }
    scores = _scores_of(findings, shown.values())
    return {
        "number": number,
        "claim": claim,
        "verdict": verdict,
        "kind": KINDS.get(verdict, "open"),
        "is_run": verdict != NOT_RUN,
        "seeds": findings.num_seeds(claim),
        "labels": [findings.table.scores[score].label for score in scores],
        "rows": [
            (
                name,
                _cells(findings, found, scores),
                findings.counts(found),
                findings.test_verdict(claim.tests[name]),
            )
            for name, found in shown.items()
        ],
        "not_run": [name for name in claim.tests if name not in shown],
    }


def _scores_of(findings: Findings, rows: Iterable[Mapping[str, Difference]]) -> list[str]:
    found = {score for row in rows for score in row}
    return [score for score in findings.table.scores if score in found]


def _cells(
    findings: Findings, found: Mapping[str, Difference], scores: Iterable[str]
) -> list[dict[str, Any] | None]:
    """Of each score: the difference, its interval as text, its sign, and whether it is chance."""
    signs = findings.signs(found)
    cells: list[dict[str, Any] | None] = []
    for score in scores:
        one, digits = found.get(score), findings.table.scores[score].digits
        if one is None:
            cells.append(None)
            continue
        ends = one.interval
        cells.append(
            {
                "mean": f"{one.mean:+.{digits}f}",
                "interval": ends and f"{ends[0]:+.{digits}f} to {ends[1]:+.{digits}f}",
                "sign": signs.get(score, 0),
                "is_chance": one.is_chance,
            }
        )
    return cells


def _figures(findings: Findings) -> Iterator[tuple[str, str]]:
    """Label and unit of each score, and the forest plot of all tests in it."""
    tests = [
        (f"{number}. {name}", findings.differences(test))
        for number, claim in enumerate(findings.table.claims, start=1)
        for name, test in claim.tests.items()
    ]
    signs = [findings.signs(found) for _, found in tests]
    for score, kind in findings.table.scores.items():
        rows = [
            Row(label=label, mean=found[score].mean, interval=ends, sign=of.get(score, 0))
            for (label, found), of in zip(tests, signs, strict=True)
            if score in found and (ends := found[score].interval) is not None
        ]
        if rows:
            yield f"{kind.label}, {kind.unit}", forest_svg(rows, f"Differences in {kind.label}")


def _united(findings: Findings) -> dict[str, Any]:
    chosen, seeds = findings.chosen(), findings.test_seeds()
    rivals = findings.rivals(chosen) if chosen else {}
    found = {rival: findings.differences(contrast, seeds) for rival, contrast in rivals.items()}
    scores = _scores_of(findings, found.values())
    return {
        "ranked": [
            (arm, f"{gain:+.2f}", number, arm in findings.table.search.candidates)
            for arm, (gain, number) in findings.development_means().items()
        ],
        "chosen": chosen,
        "labels": [findings.table.scores[score].label for score in scores],
        "rows": [
            (
                rival,
                findings.told_one(findings.mean_difference(contrast, seeds), "ntrex", counts=False),
                _cells(findings, found[rival], scores),
                findings.beats(contrast),
            )
            for rival, contrast in rivals.items()
        ],
    }


def _arms(findings: Findings) -> Iterator[tuple[list[str], list[tuple[str, str, int, list[str]]]]]:
    """Labels of the scores, and the arms with these: encoders, then translation."""
    kinds = findings.table.scores
    for scores, own in findings.arm_groups():
        yield (
            [kinds[score].label for score in scores],
            [
                (
                    name,
                    findings.table.arms[name].what,
                    len(found),
                    [
                        spread([one[score] for one in found if score in one], kinds[score].digits)
                        for score in scores
                    ],
                )
                for name, found in own.items()
            ],
        )


def _checkpoints(findings: Findings) -> Iterator[tuple[str, int, float, float, str]]:
    for name, of in checkpoints_in(findings.about).items():
        loss = fmean(of["heldout_losses"].values())
        yield name, of["steps"], of["tokens"] / 1e6, loss, of["fingerprint"]
