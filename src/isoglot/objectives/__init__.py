"""The objectives a recipe can name. To add one: one file here and one line in `OBJECTIVES`."""

from __future__ import annotations

from isoglot.errors import RecipeError, import_class, nearest
from isoglot.objectives.base import ForwardResult, Inference, LossSum, Objective, ObjectiveModule

OBJECTIVES: dict[str, str] = {
    "mlm": "isoglot.objectives.mlm:MLM",
    "tlm": "isoglot.objectives.tlm:TLM",
    "camlm": "isoglot.objectives.camlm:CAMLM",
    "btmlm": "isoglot.objectives.btmlm:BTMLM",
    "moco": "isoglot.objectives.moco:MoCo",
    "token_contrast": "isoglot.objectives.token_contrast:TokenContrast",
    "cooccurrence": "isoglot.objectives.cooccurrence:Cooccurrence",
    "distill": "isoglot.objectives.distill:Distill",
    "mass": "isoglot.objectives.mass:MASS",
    "denoise": "isoglot.objectives.denoise:Denoise",
    "backtranslate": "isoglot.objectives.backtranslate:BackTranslate",
    "entity": "isoglot.objectives.entity:EntityPrediction",
    "entailment": "isoglot.objectives.entailment:ObjectEntailment",
}
"""Name -> `module:Class`; a module is imported when its objective is asked for."""


def find_objective(name: str) -> type[Objective]:
    """The objective of a name, or the class of an import path `package.module:Class`."""
    if name not in OBJECTIVES and ":" not in name:
        raise RecipeError(f"there is no objective {name!r}: {nearest(name, OBJECTIVES)}")
    path = OBJECTIVES.get(name, name)
    found: type[Objective] = import_class(path, Objective, f"the objective {name!r}")
    return found


def all_objectives() -> tuple[type[Objective], ...]:
    """The classes of all objectives; imports every one."""
    return tuple(map(find_objective, OBJECTIVES))


__all__ = [
    "OBJECTIVES",
    "ForwardResult",
    "Inference",
    "LossSum",
    "Objective",
    "ObjectiveModule",
    "all_objectives",
    "find_objective",
]
