"""Isoglot: cross-lingual language models, from raw text to a trained and scored encoder.

This module is the public interface; modules below it are internal and may change.

    import isoglot

    isoglot.prepare("prepare.yaml", "corpora/mine")
    recipe = isoglot.load_recipe("tiny", ["stages.0.steps=200"])
    outcome = isoglot.pretrain(recipe, "corpora/mine", "runs/mine")
    results = isoglot.evaluate(outcome.model, ["tatoeba"], "eval")

Your own objective, task or reader is a class of your own package, derived from `Objective`, `Task`
or `Reader`. Name it `package.module:Class` where a recipe, `--tasks` or a prepare file names one.

Names are imported when they are used: `import isoglot` loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoglot.api import prepare, pretrain
    from isoglot.corpus import Corpus
    from isoglot.corpus.reading.reader import Reader
    from isoglot.errors import IsoglotError
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.finetuning.finetune import finetune
    from isoglot.models.encoder import Encoder
    from isoglot.objectives.base import ForwardResult, LossSum, Objective, ObjectiveModule
    from isoglot.recipe import load_recipe, recipe_names
    from isoglot.results import Results
    from isoglot.tasks.base import Task

__version__ = "0.1.0"

_PUBLIC = {
    "Corpus": "isoglot.corpus",
    "Encoder": "isoglot.models.encoder",
    "ForwardResult": "isoglot.objectives.base",
    "IsoglotError": "isoglot.errors",
    "LossSum": "isoglot.objectives.base",
    "Objective": "isoglot.objectives.base",
    "ObjectiveModule": "isoglot.objectives.base",
    "Reader": "isoglot.corpus.reading.reader",
    "Results": "isoglot.results",
    "Task": "isoglot.tasks.base",
    "evaluate": "isoglot.evaluation.evaluate",
    "finetune": "isoglot.finetuning.finetune",
    "load_recipe": "isoglot.recipe",
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
    "Corpus",
    "Encoder",
    "ForwardResult",
    "IsoglotError",
    "LossSum",
    "Objective",
    "ObjectiveModule",
    "Reader",
    "Results",
    "Task",
    "evaluate",
    "finetune",
    "load_recipe",
    "prepare",
    "pretrain",
    "recipe_names",
]
