"""Where a run starts: the model that its recipe names, or that model transplanted first.

A start with another vocabulary than the corpus's is transplanted into runs/NAME/start, a model
folder like any other with its transplant.json; the run goes on from there. MetaXLM (Chi et al.,
2021), section 3.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isoglot.batching.permutation import key_of
from isoglot.models.hub import local_folder
from isoglot.models.transplant import transplant
from isoglot.pretrain.kinds import check_start

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isoglot.corpus import Corpus
    from isoglot.models import ModelConfig
    from isoglot.models.transplant import Report
    from isoglot.pretrain.config import PretrainConfig

START = "start"


def start_of(
    config: PretrainConfig, corpus: Corpus, folder: Path, *, make: bool, say: Callable[[str], None]
) -> ModelConfig:
    """The settings of the model that a run begins with.

    Args:
        config: the recipe.
        corpus: what it is trained on.
        folder: the run's.
        make: transplant, where that is asked for; else it has been done.
        say: told how the words were matched.

    Raises:
        IsoglotError: the start has another vocabulary than the corpus, or cannot be transplanted.
    """
    start = config.model.start
    if start is None or config.transplant is None:
        check_start(config.model, corpus)
        return config.model
    if make:
        seed = key_of(config.seed, "transplant", config.transplant.seed) >> 1
        report = transplant(
            local_folder(start),
            corpus.tokenizer_folder,
            folder / START,
            replace(config.transplant, seed=seed),
        )
        say(_summary(start, report))
    return replace(config.model, start=str(folder / START))


def _summary(start: str, report: Report) -> str:
    total = sum(report.kinds.values())
    kinds = ", ".join(f"{kind} {100 * n / total:.1f} %" for kind, n in report.kinds.items())
    return f"transplanted {start} into {total:,} words: {kinds}"
