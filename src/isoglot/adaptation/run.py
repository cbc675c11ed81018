"""`isoglot adapt`: look, plan, and carry the plan out; the same command continues.

    hold out --> look --> plan --> before --> grow --> prepare --> train --> after --> give

This file locks the folder, shows one progress display, makes the plan or takes the one that is
there, edited or not, and says how an adaptation ended; the steps after it are in `carry_out.py`.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.carry_out import Adaptation, TrainingStoppedError
from isoglot.adaptation.comparison import AdaptScores
from isoglot.adaptation.display import STEPS, StepDisplay
from isoglot.adaptation.folder import AdaptFolder, StepRecords, hash_folder
from isoglot.adaptation.inputs import find_dictionaries
from isoglot.adaptation.knowledge_tables import open_knowledge
from isoglot.adaptation.look import look
from isoglot.adaptation.plan import make_plan
from isoglot.adaptation.plan_files import AdaptPlan, read_plan, write_plan
from isoglot.adaptation.request import claim
from isoglot.adaptation.resources import SampleTrial
from isoglot.folders import find_model
from isoglot.locks import lock_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from rich.console import Console
    from rich.table import Table

    from isoglot.adaptation.inputs import Progress
    from isoglot.adaptation.request import AdaptConfig

_LOOK = "look"
_ALL_STEPS = {_LOOK: "looking and planning", **STEPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptOutcome:
    """How an adaptation ended."""

    out: Path
    """The folder of the adaptation."""
    finished: bool
    """False after a dry run, or if it was asked to stop: the same command continues."""
    plan: AdaptPlan | None = None
    """None if it was stopped before it had one."""
    scores: AdaptScores | None = None
    """Before and after; none unless it is finished."""
    stopped: str = ""
    """Where it was asked to stop, in words; empty if it was not."""
    was_done: bool = False
    """Whether an earlier command had finished it, and nothing was left to do."""
    pushed: tuple[str, ...] = ()
    """Addresses of the repositories on the hub."""

    @property
    def model(self) -> Path | None:
        """The adapted encoder, as a transformers folder; none unless it is finished."""
        return AdaptFolder(self.out).model if self.finished else None

    @property
    def sentence_model(self) -> Path | None:
        """The adapted encoder, as a sentence-transformers folder; none where there is none."""
        folder = AdaptFolder(self.out).sentence_model
        return folder if self.finished and (folder / "modules.json").is_file() else None

    @property
    def report(self) -> Path | None:
        """The page with the scores before and after; none unless it is finished."""
        return AdaptFolder(self.out).report if self.finished else None


def adapt(
    config: AdaptConfig,
    out: Path,
    *,
    console: Console,
    dry_run: bool = False,
    push_to_hub: str | None = None,
) -> AdaptOutcome:
    """Adapt an encoder to languages, or continue; see `isoglot.api.adapt`.

    Args:
        config: the request.
        out: folder of the adaptation.
        console: where facts, the plan and progress are shown.
        dry_run: stop after planning.
        push_to_hub: name of a repository for the adapted model; none: it is not pushed.

    Raises:
        IsoglotError: something that the user can mend; what is finished is kept.
    """
    began = time.monotonic()
    find_model(config.encoder)  # a wrong name leaves no folder behind
    _check_alignments(config)
    open_knowledge(config)
    if push_to_hub is not None and not dry_run:
        from isoglot.adaptation.export import check_hub

        check_hub(push_to_hub)
    folder = AdaptFolder(Path(out))
    with (
        lock_folder(folder.path),
        _quiet_transformers(),
        StepDisplay(console, _ALL_STEPS) as display,
        _terminations(),
    ):
        outcome = _adapt(config, folder, display, console, began, dry_run=dry_run)
    if push_to_hub is None or not outcome.finished:
        return outcome
    return replace(outcome, pushed=_push(push_to_hub, folder))


def _adapt(
    config: AdaptConfig,
    folder: AdaptFolder,
    display: StepDisplay,
    console: Console,
    began: float,
    *,
    dry_run: bool,
) -> AdaptOutcome:
    plan: AdaptPlan | None = None

    def progress(_: str, done: int, total: int | None) -> None:
        if total:
            display.advance(done / total)

    try:
        display.begin(_LOOK)
        plan = plan_adaptation(config, folder, console, progress, began)
        display.finish(_LOOK)
        if dry_run:
            return AdaptOutcome(out=folder.path, finished=False, plan=plan)
        return carry_out_plan(config, plan, folder, display, console)
    except KeyboardInterrupt:
        stopped = f"interrupted while {display.title or 'between two steps'}"
        return AdaptOutcome(out=folder.path, finished=False, plan=plan, stopped=stopped)


def plan_adaptation(
    config: AdaptConfig,
    folder: AdaptFolder,
    console: Console,
    progress: Progress | None = None,
    began: float | None = None,
) -> AdaptPlan:
    """Look and plan, or take the plan that is there; facts and the plan are printed.

    Args:
        config: the request.
        folder: its folder, locked by the caller.
        console: where facts and the plan are printed.
        progress: told of downloads and of the pass over the data.
        began: when the command began, by `time.monotonic`; none: now.

    Raises:
        IsoglotError: the folder is another request's, or the data or the encoder cannot be used.
    """

    def tell(sentence: str) -> None:
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)

    began = time.monotonic() if began is None else began
    if note := claim(folder, config):
        tell(note)
    find_dictionaries(config, folder.downloads)  # a wrong file is told before the data are read
    findings = look(config, folder, tell=tell, progress=progress)
    plan = read_plan(folder)
    if plan is None:
        tell("timing a few steps")
        measure = SampleTrial(findings, folder, config.hours, console)
        plan = make_plan(findings, config, folder, measure, spent_seconds=time.monotonic() - began)
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


def carry_out_plan(
    config: AdaptConfig,
    plan: AdaptPlan,
    folder: AdaptFolder,
    display: StepDisplay,
    console: Console,
) -> AdaptOutcome:
    """Take all steps after planning."""
    begun = display.num_begun
    work = Adaptation(config=config, plan=plan, folder=folder, display=display, console=console)
    try:
        before, corpus = work.until_training()
        work = work.with_steps_left()
        scores = work.from_training(before, corpus)
    except TrainingStoppedError as stopped:
        return AdaptOutcome(out=folder.path, finished=False, plan=work.plan, stopped=str(stopped))
    return AdaptOutcome(
        out=folder.path,
        finished=True,
        plan=work.plan,
        scores=scores,
        was_done=display.num_begun == begun,
    )


def _push(name: str, folder: AdaptFolder) -> tuple[str, ...]:
    """Push both folders, unless the same ones were pushed there before; gives the addresses."""
    from isoglot.adaptation.export import SUFFIX, push_folders

    both = {"": folder.model, SUFFIX: folder.sentence_model}
    folders = {suffix: one for suffix, one in both.items() if one.is_dir()}
    inputs = {"name": name, "folders": [hash_folder(one) for one in folders.values()]}
    found = StepRecords(folder.steps).run(
        "push", inputs, lambda: {"addresses": push_folders(name, folders)}
    )
    return tuple(found["addresses"])


def _check_alignments(config: AdaptConfig) -> None:
    """Refuse a folder without gold alignments before any work."""
    if config.alignments:
        from isoglot.adaptation.scores import gold_alignments

        folders = [Path(one).expanduser() for one in config.alignments]
        gold_alignments(folders, config.languages)


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Transformers' own progress bars would be drawn into the one of the adaptation."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


@contextmanager
def _terminations() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does; while training, both save a checkpoint first."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python handles signals in the main thread only
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
