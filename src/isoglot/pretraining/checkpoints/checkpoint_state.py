"""state.json of a checkpoint: the progress of a run, and what describes its tensors.

Its first line is the SHA-256 of the rest, so that damage is found before anything else is read:

    4f1d0c...
    {"format": 3, "stage": 0, "step": 1000, "cursor": {...}, "tensors": {...}, "sha256": {...}}

`sha256` has the hashes of all other files of the checkpoint, `tensors` the file of each part of
each tensor (`checkpoint_files.py`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.errors import CheckpointError
from isoglot.pretraining.monitoring.early_stopping import HeldoutProgress
from isoglot.types import Cursor, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 3
ONE_PROCESS_FORMAT = 2
"""The format before: written by one process, without a list of tensors. It is still read."""
_STATE = "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """Progress of a run: what a checkpoint holds beside its tensors."""

    stage: int
    """The stage that was running, from 0."""
    step: int
    """Steps taken in that stage."""
    total_steps: int
    """Steps taken in all stages; names the folder."""
    tokens: int
    """Tokens trained on so far."""
    cursor: Cursor
    corpus_fingerprint: str
    """Of the data that the streams read."""
    recipe_fingerprint: str
    """Fingerprint of the settings that decide the numbers."""
    heldout: HeldoutProgress | None = None
    """The best validation so far, where a run looks for it."""

    def content(self) -> dict[str, Any]:
        """What state.json has of it."""
        content = asdict(self)
        content["cursor"]["pending"] = list(map(list, self.cursor.pending))
        if self.heldout is None:
            del content["heldout"]
        return content


class FormatError(CheckpointError):
    """A checkpoint was written in another format; it is not damaged."""


def state_file(place: Path) -> Path:
    """The file of a checkpoint that describes it."""
    return place / _STATE


def state_text(content: Mapping[str, Any]) -> str:
    """The text of state.json: a hash and the content."""
    text = json.dumps({"format": FORMAT, **content})
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n"


def parse_state(content: dict[str, Any]) -> TrainState:
    """The progress in state.json; a `TypeError` if a number is none."""
    cursor = content["cursor"]
    state = TrainState(
        stage=content["stage"],
        step=content["step"],
        total_steps=content["total_steps"],
        tokens=content["tokens"],
        cursor=Cursor(
            step=cursor["step"],
            counters=tuple(cursor["counters"]),
            pending=tuple(Draw(*draw) for draw in cursor["pending"]),
        ),
        corpus_fingerprint=content["corpus_fingerprint"],
        recipe_fingerprint=content["recipe_fingerprint"],
        heldout=HeldoutProgress(**content["heldout"]) if "heldout" in content else None,
    )
    numbers = (state.stage, state.step, state.total_steps, state.tokens, state.cursor.step)
    if not all(type(one) is int and one >= 0 for one in (*numbers, *state.cursor.counters)):
        raise TypeError("a count is not a number from 0 on")
    if not isinstance(state.corpus_fingerprint, str):
        raise TypeError("a fingerprint is not text")
    if state.heldout is not None:
        state.heldout.check()
    return state


def read_state(place: Path) -> dict[str, Any]:
    """The content of the state.json of a checkpoint, after its hash was checked.

    Raises:
        FormatError: another version wrote it.
        CheckpointError: it is damaged, or is no state of a checkpoint.
    """
    file = place / _STATE
    try:
        digest, text = file.read_text(encoding="utf-8").split("\n", 1)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from error
    text = text.removesuffix("\n")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise CheckpointError(f"{file} is damaged: its SHA-256 is not the recorded one.")
    try:
        content: dict[str, Any] = json_text.parse(text)
        written, hashes = content["format"], dict(content["sha256"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} is not the state of a checkpoint ({error!r}).") from error
    if written not in (FORMAT, ONE_PROCESS_FORMAT):
        raise FormatError(
            f"{place} has format {written} and this version reads {FORMAT}: "
            f"resume it with the version of Isoglot that wrote it, or start a new run."
        )
    return content | {"sha256": hashes}
