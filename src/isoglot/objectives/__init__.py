"""The objectives a recipe can name. One more is one file here and one entry in `OBJECTIVES`."""

from __future__ import annotations

import importlib

from isoglot.errors import RecipeError, nearest
from isoglot.objectives.backtranslate import BackTranslate
from isoglot.objectives.base import Encoded, Inference, LossSum, Objective, ObjectiveModule
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.objectives.denoise import Denoise
from isoglot.objectives.distill import Distill
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.objectives.mass import MASS
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM

OBJECTIVES: tuple[type[Objective], ...] = (
    MLM,
    TLM,
    CAMLM,
    BTMLM,
    MoCo,
    Cooccurrence,
    Distill,
    MASS,
    Denoise,
    BackTranslate,
    EntityPrediction,
    ObjectEntailment,
)


def find_objective(name: str) -> type[Objective]:
    """The objective of this name, or, for `package.module:Class`, one that lives elsewhere."""
    for objective in OBJECTIVES:
        if objective.name == name:
            return objective
    if ":" not in name:
        known = [objective.name for objective in OBJECTIVES]
        raise RecipeError(f"there is no objective {name!r}: {nearest(name, known)}")
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RecipeError(f"the objective {name!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Objective)):
        raise RecipeError(f"{name!r} is not an Objective (isoglot.objectives.Objective)")
    return found


__all__ = [
    "BTMLM",
    "CAMLM",
    "MASS",
    "MLM",
    "OBJECTIVES",
    "TLM",
    "BackTranslate",
    "Cooccurrence",
    "Denoise",
    "Distill",
    "Encoded",
    "EntityPrediction",
    "Inference",
    "LossSum",
    "MoCo",
    "ObjectEntailment",
    "Objective",
    "ObjectiveModule",
    "find_objective",
]
