"""The plan of a script: its commands, GPU hours and sizes on disk.

    reproduce/ppa.sh --dry-run                          what a person reads
    python -m reproduce.plan ppa --markdown < commands  the table of the paper's page

Reads a command a line. Hours are those of `reproduce.hours`, sizes those of `reproduce.sizes`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reproduce import hours, sizes
from reproduce.table import PAPERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.finetuning.settings import FinetuneRequest

_VOCABULARY = {"mlm-gc": 80_000, "unmt": 60_000}
"""Vocabularies that are trained; all other papers take XLM-R's or mBERT's."""
_XLMR = 250_002
_READS_CC100 = {"mlm-gc": "prepare-ne.yaml"}
"""The prepare file with CC-100's text, where it is not prepare.yaml."""


@dataclass(frozen=True)
class Step:
    """A command and what it costs."""

    command: str
    gpu_hours: float = 0.0
    core_hours: float = 0.0
    disk: float = 0.0
    note: str = ""
    unknown: bool = False
    """Whether it writes more than `disk`, and how much is not known."""


class Plan:
    """Counts the steps of a script, one after the other."""

    def __init__(self, paper: str) -> None:
        self.paper = paper
        self._shapes = dict(hours.HUB)
        self._text = 0.0

    def step(self, command: str) -> Step:
        """What a command costs."""
        words = shlex.split(command)
        if words[0] != "isoglot":
            return Step(command)
        count = {
            "fetch": self._fetch,
            "prepare": self._prepare,
            "pretrain": self._pretrain,
            "finetune": self._finetune,
        }.get(words[1])
        return Step(command) if count is None else count(command, words[2:])

    def _fetch(self, command: str, words: list[str]) -> Step:
        names = words[: words.index("--out")]
        total, unknown = sizes.fetched(names)
        self._text = sizes.text_of(names)
        note = f"and {len(unknown)} whose size only the server knows" if unknown else ""
        return Step(command, disk=total, note=note, unknown=bool(unknown))

    def _prepare(self, command: str, words: list[str]) -> Step:
        reads_cc100 = words[0] == _READS_CC100.get(self.paper, "prepare.yaml")
        text = self._text if reads_cc100 else 0.0
        note = "for CC-100's text" if text else "not known before the text is there"
        size = sizes.corpus_bytes(text)
        return Step(
            command, core_hours=sizes.core_hours(text), disk=size, note=note, unknown=not text
        )

    def _pretrain(self, command: str, words: list[str]) -> Step:
        from isoglot.recipe import load_recipe

        name, out = words[0], words[words.index("--out") + 1]
        recipe = load_recipe(name, _settings(words))
        kind = "unmt" if name.startswith("unmt") else self.paper
        vocabulary = _VOCABULARY.get(kind, _XLMR)
        shape = self._shapes[out] = hours.shape_of(recipe, vocabulary)
        spent = hours.pretraining_hours(recipe, vocabulary)
        last = recipe.stages[-1].streams.values()
        generates = any("backtranslate" in stream.objectives for stream in last)
        note = "without the generation of back-translation" if generates else ""
        return Step(command, gpu_hours=spent, disk=sizes.run_bytes(recipe, shape), note=note)

    def _finetune(self, command: str, words: list[str]) -> Step:
        from isoglot.tasks import find_task

        tasks = words[words.index("--tasks") + 1].split(",")
        request = _request(words)
        spent = sum(
            hours.finetuning_hours(self._shapes[words[0]], find_task(task), request)
            for task in tasks
        )
        return Step(command, gpu_hours=spent)


def _settings(words: list[str]) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == "--set"]


def _request(words: list[str]) -> FinetuneRequest:
    from isoglot.cli.options import finetune_request, parse_languages

    def value(option: str, default: str) -> str:
        return words[words.index(option) + 1] if option in words else default

    seeds = value("--seeds", "")
    return finetune_request(
        value("--scenario", "zero-shot"),
        value("--protocol", "xtreme"),
        seeds=int(seeds) if seeds else None,
        targets=parse_languages(value("--languages", "")),
        changes=_settings(words),
    )


def markdown(steps: Iterable[Step]) -> str:
    """The steps that cost something as a table, and the sum."""
    steps = list(steps)
    lines = ["| command | times | GPU hours | on disk |", "|---|--:|--:|---|"]
    alike: dict[str, list[Step]] = {}
    for step in steps:
        if step.gpu_hours or step.core_hours or step.disk or step.note:
            alike.setdefault(_short(step.command), []).append(step)
    for name, same in alike.items():
        number = f"{len(same)}" if len(same) > 1 else ""
        spent = _hours(sum(step.gpu_hours for step in same))
        lines.append(f"| `{name}` | {number} | {spent} | {_disk(same)} |")
    total = sum(step.gpu_hours for step in steps)
    disk = sizes.shown(sum(step.disk for step in steps))
    more = "more than " if any(step.unknown for step in steps) else ""
    lines.append(f"| **all** | | **{_hours(total)}** | **{more}{disk}** |")
    return "\n".join(lines)


def _short(command: str) -> str:
    """A command without most of its arguments."""
    words = shlex.split(command)[1:]
    if words[0] == "fetch":
        return f"fetch, {words.index('--out') - 1} names"
    scenario = words[words.index("--scenario") + 1] if "--scenario" in words else "zero-shot"
    return f"{words[0]} {words[1]}" + ("" if scenario == "zero-shot" else f", {scenario}")


def _hours(number: float) -> str:
    if not number:
        return ""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _disk(same: list[Step]) -> str:
    size = sum(step.disk for step in same)
    cores = sum(step.core_hours for step in same)
    told = f"{_hours(cores)} hours of one core" if cores else ""
    return ", ".join(filter(None, (sizes.shown(size) if size else "", same[0].note, told)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("--small", action="store_true", help="the commands of --small: no hours")
    parser.add_argument("--markdown", action="store_true", help="the table alone")
    given = parser.parse_args()
    commands = sys.stdin.read().splitlines()
    if given.small:
        print("\n".join(commands))
        return
    plan = Plan(given.paper)
    steps = [plan.step(command) for command in commands]
    if not given.markdown:
        print("\n".join(commands))
        print("\nGPU hours: of one H200, by speeds measured there (reproduce/hours.py).\n")
    print(markdown(steps))


if __name__ == "__main__":
    main()
