"""The demo's table, its margin by seed, and how to open what was trained."""

from __future__ import annotations

from statistics import mean, stdev
from typing import TYPE_CHECKING

from rich.table import Table

from isoglot.demo.world import TEST_PAIRS

if TYPE_CHECKING:
    from rich.console import Console

    from isoglot.demo.jobs import Outcome

CONTROL = "MLM"
VARIANTS = {CONTROL: "demo/mlm", "MLM + TLM": "demo/mlm-tlm", "PPA": "demo/ppa"}
"""Label of each row, and the recipe behind it; the first is the control."""


def print_table(outcomes: list[Outcome], terminal: Console, seconds: float) -> None:
    """Print what the runs reached: the checkpoint first, then a row a variant."""
    base, rest = outcomes[0], outcomes[1:]
    languages = list(base.by_language)
    columns = (*languages, "average", "by seed", "not centred")
    table = Table("", *columns, title="Sentence retrieval, accuracy@1 in percent")
    for label, rows in {"checkpoint": [base], **_grouped(rest)}.items():
        table.add_row(
            label,
            *(f"{mean(row.by_language[code] for row in rows):.1f}" for code in languages),
            _mean_sd([row.average for row in rows]),
            " ".join(f"{row.average:.1f}" for row in rows),
            _mean_sd([row.plain for row in rows]),
        )
    terminal.print(table)
    groups = _grouped(rest)
    tokens = {row.tokens for row in rest}
    best = max(rest, key=lambda row: row.average).model
    terminal.print(
        f"Both directions with English, {TEST_PAIRS} sentences a language, mean-pooled states of "
        f"each model's best layer, each language's mean vector taken off (centred).\n"
        f"All from the same checkpoint with {_about(tokens)} tokens each.\n"
        + "".join(_margin(label, groups) for label in VARIANTS if label != CONTROL)
        + f"{seconds:.0f} s. Two of the encoders trained, plain Hugging Face folders:\n"
        f"  {groups[CONTROL][0].model}\n  {best}\n\n"
        f"Open one:\n\n"
        f"  from transformers import AutoModelForMaskedLM, AutoTokenizer\n"
        f"  tokenizer = AutoTokenizer.from_pretrained({str(best)!r})\n"
        f"  model = AutoModelForMaskedLM.from_pretrained({str(best)!r})",
        highlight=False,
        soft_wrap=True,
    )


def _grouped(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    return {label: [row for row in outcomes if row.label == label] for label in VARIANTS}


def _margin(label: str, groups: dict[str, list[Outcome]]) -> str:
    pairs = zip(groups[CONTROL], groups[label], strict=True)
    margins = [row.average - control.average for control, row in pairs]
    by_seed = " ".join(f"{margin:+.1f}" for margin in margins)
    return f"{label}, margin over {CONTROL}: {_mean_sd(margins)} points; by seed {by_seed}.\n"


def _mean_sd(values: list[float]) -> str:
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}"


def _about(tokens: set[int]) -> str:
    """Equal to the rows' filling: a percent or two apart."""
    return f"{round(mean(tokens), -3):,.0f}"
