"""The first half of `isoglot adapt`: from a request to a plan that is shown, before any training.

    request --claim--> OUT --look--> findings --make_plan--> OUT/plan

A plan that is there already is used as it is, edited or not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from isoglot.adaptation.look import look
from isoglot.adaptation.plan import AdaptPlan, make_plan, read_plan, write_plan
from isoglot.adaptation.request import claim
from isoglot.folders import find_model

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from isoglot.adaptation.config import AdaptConfig
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.inputs import Progress


def plan_adaptation(
    config: AdaptConfig,
    folder: AdaptFolder,
    console: Console,
    progress: Progress | None = None,
) -> AdaptPlan:
    """Look and plan, or take the plan that is there; facts and the plan are printed.

    Args:
        config: the request.
        folder: its folder, locked by the caller.
        console: where facts and the plan are printed.
        progress: told of downloads and of the pass over the data.

    Raises:
        IsoglotError: the folder is another request's, or the data or the encoder cannot be used.
    """

    def tell(sentence: str) -> None:
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)

    began = time.monotonic()
    find_model(config.encoder)  # a wrong name leaves no folder behind
    if note := claim(folder, config):
        tell(note)
    findings = look(config, folder, tell=tell, progress=progress)
    plan = read_plan(folder)
    if plan is None:
        tell("timing a few steps")
        plan = make_plan(findings, config, folder, spent_seconds=time.monotonic() - began)
        write_plan(plan, folder)
        said = f"written to {folder.plan}: edit it, and the same command uses it as it is"
    elif plan.edited:
        said = f"{folder.plan} is used as it is; edited: {', '.join(plan.edited)}"
    else:
        said = f"{folder.plan} is used as it is"
    console.print(plan_table(plan))
    tell(f"plan: {said}")
    return plan


def plan_table(plan: AdaptPlan) -> Table:
    """Every choice with its reason."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table("plan", "choice", "why", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for one in plan.decisions:
        style = "bold yellow" if one.topic.isupper() else ""
        table.add_row(Text(one.topic, style=style), Text(one.choice), Text(one.reason, "dim"))
    return table
