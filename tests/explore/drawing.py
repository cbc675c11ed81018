"""The module docs/figures.py, and micro-batches of its recipes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from isoglot.explore.drawn_batch import DrawnBatch, decode_batch
from isoglot.explore.stage_batches import StageBatches, open_stage

DOCS = Path(__file__).parent.parent.parent / "docs"
_SPEC = importlib.util.spec_from_file_location("figures", DOCS / "figures.py")
assert _SPEC is not None
assert _SPEC.loader is not None
FIGURES: ModuleType = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(FIGURES)
OBJECTIVES = tuple(FIGURES.DRAWINGS)


def open_figure(name: str, corpus) -> StageBatches:
    """The stage that the figure of an objective is drawn from."""
    return open_stage(FIGURES.recipe_of(FIGURES.DRAWINGS[name], corpus), corpus)


def drawn_figure(name: str, corpus) -> tuple[StageBatches, DrawnBatch]:
    """The stage of a figure, and its first micro-batch, decoded."""
    stage = open_figure(name, corpus)
    return stage, decode_batch(stage.micro_batch(), stage)
