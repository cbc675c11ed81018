"""Which checkpoint a run goes on from, and whether it may: the same corpus, the same stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import CheckpointError
from isoglot.pretrain.checkpoint import Checkpoint, newest_sound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isoglot.batching.loader import Loader
    from isoglot.corpus import Corpus
    from isoglot.types import Cursor


def to_resume(
    folder: Path,
    *,
    corpus: Corpus,
    fingerprint: str,
    recipe: str,
    num_stages: int,
    warn: Callable[[str], None],
) -> Checkpoint | None:
    """The newest sound checkpoint of a run, if it can go on with this corpus and recipe.

    Args:
        folder: the run's.
        corpus: what it is to go on with.
        fingerprint: of what its streams read there; another than it was trained on is refused.
        recipe: fingerprint of the settings; others than before are only warned of.
        num_stages: stages of the recipe.
        warn: told what the user should know.
    """
    found = newest_sound(folder / "checkpoints", warn)
    if found is None:
        warn(f"{folder} has no sound checkpoint yet: starting at step 0.")
        return None
    state = found.state
    if state.corpus != fingerprint:
        raise CheckpointError(
            f"{found.place} was trained on another corpus than {corpus.folder} (fingerprints "
            f"{state.corpus[:12]} and {fingerprint[:12]}). Give the corpus it was trained "
            f"on, or start a new run from its weights with model.start."
        )
    if state.stage >= num_stages:
        raise CheckpointError(
            f"{found.place} is in stage {state.stage + 1} and the recipe has only {num_stages}: "
            f"resume with the recipe it began with."
        )
    if state.recipe != recipe:
        warn(
            f"the recipe is not the one {found.place} was written with: the run goes on, but not "
            f"as it would have without the stop."
        )
    return found


def check_cursor(cursor: Cursor, loader: Loader) -> None:
    """Refuse a cursor that counts draws from other (source, language) cells than a loader has."""
    cells = len(loader.mixture.cells)
    if cursor.counters and len(cursor.counters) != cells:
        raise CheckpointError(
            f"the checkpoint's data came from {len(cursor.counters)} (source, language) cells and "
            f"the recipe now has {cells}: resume with the recipe it began with."
        )
