"""What all processes of a run must agree on, compared by a gather of short hashes.

Processes with different settings, data or checkpoints would train on mismatched batches, or wait
for each other in different places. They are compared three times: settings, versions and the
corpus before anything is done, then the folder of the run, which must be the same one on every
machine, then the position to start or resume from. A difference ends the run with a sentence that
names the rank, its machine, and what differs.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from accelerate.utils import gather_object

from isoglot import __version__
from isoglot.batching.counter_rng import key_of
from isoglot.errors import IsoglotError
from isoglot.locks import lock_content
from isoglot.pretraining.config import data_fingerprint
from isoglot.pretraining.processes.waiting import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accelerate import Accelerator

    from isoglot.corpus import Corpus
    from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
    from isoglot.pretraining.config import PretrainConfig
    from isoglot.pretraining.estimates.measuring import TimeBudget

_PACKAGES = ("torch", "transformers", "accelerate")
_OWN = ("loader", "name", "summary", "paper", "differs", "corpus")
"""Settings that a process may have for itself, or that decide nothing."""
_SHOWN = 40
"""Characters of a value that the sentence shows; of a longer one, its hash."""
_NAMED = 4
"""Differences that the sentence lists."""
_FOLDER_SECONDS = 20.0
"""Time until a file of one machine is seen by another over a network disk."""


class AgreementError(IsoglotError):
    """The processes of a run differ in something that must be the same."""


@dataclass(frozen=True, slots=True)
class _Process:
    """What one process has: for each name the hash of its value, and the value if it is short."""

    host: str
    values: tuple[tuple[str, str, str], ...]


def agree_on_settings(
    accelerator: Accelerator,
    config: PretrainConfig,
    corpus: Corpus,
    *,
    resume: bool,
    budget: TimeBudget | None,
) -> None:
    """Refuse processes with other versions, settings or data than the first one's."""
    facts: dict[str, object] = {f"the version of {name}": of for name, of in _versions().items()}
    facts |= {
        f"the setting {one.name}": getattr(config, one.name)
        for one in fields(config)
        if one.name not in _OWN
    }
    facts["the number of stages"] = len(config.stages)
    facts["the corpus"] = data_fingerprint(config, corpus)
    facts["the option --resume"] = resume
    facts["the option --hours"] = budget and budget.hours
    agree(
        accelerator,
        facts,
        "Start all of them with the same command, recipe, corpus and installation.",
    )


def _versions() -> dict[str, str]:
    return {"isoglot": __version__, **{name: version(name) for name in _PACKAGES}}


def agree_on_folder(accelerator: Accelerator, folder: Path) -> None:
    """Refuse processes that do not see the run's folder that the main process has locked."""
    if accelerator.num_processes == 1:
        return
    mains = gather_object([lock_content(folder)])[0]
    deadline = time.monotonic() + _FOLDER_SECONDS
    while (seen := lock_content(folder)) != mains and time.monotonic() < deadline:
        time.sleep(0.2)
    agree(
        accelerator,
        {"the run's folder": "the one that is locked" if seen == mains else "another one"},
        f"{folder} must be on a disk that all machines share: give such a folder with --out. (The "
        "corpus may be a copy on each machine.)",
    )


def agree_on_position(accelerator: Accelerator, state: TrainState, num_steps: list[int]) -> None:
    """Refuse processes that would start or go on at another step, stage or place in the data."""
    facts = {
        "the step": state.total_steps,
        "the stage": state.stage,
        "the step of the stage": state.step,
        "the tokens": state.tokens,
        "the cursor": state.cursor,
        "the recipe": state.recipe_fingerprint,
        "the corpus": state.corpus_fingerprint,
        "the steps of the stages": num_steps,
    }
    agree(
        accelerator,
        facts,
        "All processes must read the same undamaged checkpoint: see whether the disk gives every "
        "machine the same files, and start again with --resume.",
    )


def agree(accelerator: Accelerator, facts: Mapping[str, object], fix: str) -> None:
    """Compare what all processes have; all end if one has something else than the first.

    Args:
        accelerator: the processes.
        facts: values by a name that the sentence can use.
        fix: what the user can do, as a sentence.

    Raises:
        AgreementError: on the main process and on those that differ; others end silently.
    """
    if accelerator.num_processes == 1:
        return
    wait_for_all(accelerator)
    own = _Process(socket.gethostname(), tuple(_hashed(*fact) for fact in facts.items()))
    found: list[_Process] = gather_object([own])
    different = [rank for rank, one in enumerate(found) if one.values != found[0].values]
    if not different:
        return
    if accelerator.process_index not in (0, *different):
        raise SystemExit(1)
    raise AgreementError(_sentence(found, different, fix))


def _hashed(name: str, value: Any) -> tuple[str, str, str]:
    text = str(value)
    digest = f"{key_of(repr(value)):016x}"[:12]
    return name, digest, text if len(text) <= _SHOWN else f"{digest} (hash)"


def _sentence(found: list[_Process], different: list[int], fix: str) -> str:
    rank, main = different[0], found[0]
    there, here = (
        {name: (digest, shown) for name, digest, shown in one.values} for one in (found[rank], main)
    )
    nothing = ("", "nothing")
    names = [name for name in there | here if there.get(name) != here.get(name)]
    values = "; ".join(
        f"{name}: {there.get(name, nothing)[1]} there, {here.get(name, nothing)[1]} on rank 0"
        for name in names[:_NAMED]
    )
    also = f" (and {len(different) - 1} more ranks)" if len(different) > 1 else ""
    return (
        f"Rank {rank} on {found[rank].host}{also} differs from rank 0 on {main.host} in {values}. "
        f"{fix}"
    )
