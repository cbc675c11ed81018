"""Isoglot: cross-lingual language models, from raw text to a trained and scored encoder.

This module is the public interface; modules below it are internal and may change.

    import isoglot

    isoglot.prepare("prepare.yaml", "corpora/mine")
    recipe = isoglot.load_recipe("tiny", ["stages.0.steps=200"])
    outcome = isoglot.pretrain(recipe, "corpora/mine", "runs/mine")
    results = isoglot.evaluate(outcome.model, ["tatoeba"], "eval")

    isoglot.adapt("xlm-roberta-base", "adapted", text={"sw": "sw.txt"}, pairs={"en-sw": "p.tsv"})

Your own objective, task or reader is a class of your own package, derived from `Objective`, `Task`
or `Reader`. Name it `package.module:Class` where a recipe, `--tasks` or a prepare file names one.

Names are imported when they are used: `import isoglot` loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoglot.alignment.align import align
    from isoglot.alignment.config import AlignConfig
    from isoglot.api import adapt, estimate, estimate_memory, prepare, pretrain
    from isoglot.corpus import Corpus
    from isoglot.corpus.reading.reader import Reader
    from isoglot.errors import IsoglotError
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.exporting.export import ExportOptions, export_model
    from isoglot.fetching.fetch import fetch
    from isoglot.finetuning.finetune import finetune
    from isoglot.mining.config import MineConfig
    from isoglot.mining.mine import mine
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import ForwardResult, LossSum, Objective, ObjectiveModule
    from isoglot.recipe import load_recipe, recipe_names
    from isoglot.results import Results
    from isoglot.tasks.base import Task

__version__ = "0.1.0"

_PUBLIC = {
    "AlignConfig": "isoglot.alignment.config",
    "Corpus": "isoglot.corpus",
    "Encoder": "isoglot.models.encoder",
    "ExportOptions": "isoglot.exporting.export",
    "ForwardResult": "isoglot.objectives.base",
    "IsoglotError": "isoglot.errors",
    "LossSum": "isoglot.objectives.base",
    "MineConfig": "isoglot.mining.config",
    "Objective": "isoglot.objectives.base",
    "ObjectiveModule": "isoglot.objectives.base",
    "Reader": "isoglot.corpus.reading.reader",
    "Results": "isoglot.results",
    "Task": "isoglot.tasks.base",
    "adapt": "isoglot.api",
    "align": "isoglot.alignment.align",
    "estimate": "isoglot.api",
    "estimate_memory": "isoglot.api",
    "evaluate": "isoglot.evaluation.evaluate",
    "export_model": "isoglot.exporting.export",
    "fetch": "isoglot.fetching.fetch",
    "finetune": "isoglot.finetuning.finetune",
    "load_recipe": "isoglot.recipe",
    "mine": "isoglot.mining.mine",
    "prepare": "isoglot.api",
    "pretrain": "isoglot.api",
    "recipe_names": "isoglot.recipe",
}
"""Public name -> the module that defines it."""


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'isoglot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_PUBLIC, "__version__"]


__all__ = [
    "AlignConfig",
    "Corpus",
    "Encoder",
    "ExportOptions",
    "ForwardResult",
    "IsoglotError",
    "LossSum",
    "MineConfig",
    "Objective",
    "ObjectiveModule",
    "Reader",
    "Results",
    "Task",
    "adapt",
    "align",
    "estimate",
    "estimate_memory",
    "evaluate",
    "export_model",
    "fetch",
    "finetune",
    "load_recipe",
    "mine",
    "prepare",
    "pretrain",
    "recipe_names",
]
