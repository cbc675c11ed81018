"""Which checkpoint a run resumes from, and whether the corpus and the recipe fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.errors import CheckpointError
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint, latest_valid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch.distributed import ProcessGroup

    from isoglot.batching.loader import Loader
    from isoglot.corpus import Corpus
    from isoglot.types import Cursor


def checkpoint_to_resume(
    folder: Path,
    *,
    corpus: Corpus,
    corpus_fingerprint: str,
    recipe_fingerprint: str,
    num_stages: int,
    warn: Callable[[str], None],
    group: ProcessGroup | None = None,
) -> Checkpoint | None:
    """The newest valid checkpoint of a run, if it can be resumed with this corpus and recipe.

    Args:
        folder: the run's.
        corpus: the corpus to resume with.
        corpus_fingerprint: of the data that the streams read; a different one is refused.
        recipe_fingerprint: of the settings; a different one gives a warning.
        num_stages: stages of the recipe.
        warn: receives notes for the user.
        group: the processes of the run, which verify the checkpoint together; none: one.
    """
    found = latest_valid(folder / "checkpoints", warn, group)
    if found is None:
        warn(f"{folder} has no checkpoint yet: the run starts at step 0.")
        return None
    state = found.state
    if state.corpus_fingerprint != corpus_fingerprint:
        raise CheckpointError(
            f"{found.place} was trained on another corpus than {corpus.folder} (fingerprints "
            f"{state.corpus_fingerprint[:12]} and {corpus_fingerprint[:12]}). Give the corpus it "
            f"was trained on, or start a new run from its weights with model.init_from."
        )
    if state.stage >= num_stages:
        raise CheckpointError(
            f"{found.place} is in stage {state.stage + 1} and the recipe has only {num_stages}: "
            f"resume with the recipe that it was started with."
        )
    if state.recipe_fingerprint != recipe_fingerprint:
        warn(
            f"the recipe differs from the one {found.place} was written with: the run continues, "
            f"but not as it would have without the interruption."
        )
    return found


def check_cursor(cursor: Cursor, loader: Loader) -> None:
    """Refuse a cursor that counts the draws of other (source, language) components."""
    components = len(loader.mixture.components)
    if cursor.counters and len(cursor.counters) != components:
        raise CheckpointError(
            f"the checkpoint counts the draws of {len(cursor.counters)} (source, language) "
            f"components, and the recipe now has {components}. Resume with the recipe that the run "
            "began with, or start a new run with --out."
        )
