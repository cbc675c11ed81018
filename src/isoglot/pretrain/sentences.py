"""Which head a run's sentence-transformers folder has: that of the objective that makes vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from isoglot.errors import RecipeError

if TYPE_CHECKING:
    from isoglot.models import ExportConfig, SentenceHead
    from isoglot.pretrain.trainee import Trainee


@runtime_checkable
class MakesSentenceVectors(Protocol):
    """An objective's model half that makes one vector of a sentence."""

    def sentence_head(self, *, projected: bool) -> SentenceHead:
        """What stands between the encoder's final states and the vector."""
        ...


def sentence_head(trainee: Trainee, settings: ExportConfig) -> SentenceHead | None:
    """The head to export, if one is wanted.

    Raises:
        RecipeError: one is wanted, and no objective has one or plain models cannot hold it.
    """
    if settings.sentence_transformers == "no":
        return None
    if trainee.encoder.settings.languages == "all":
        raise RecipeError(
            "export.sentence_transformers: sentence-transformers has no language embeddings, and "
            "the model has them on all tokens. Set model.languages: none, or export none."
        )
    for module in trainee.objectives.children():
        if isinstance(module, MakesSentenceVectors):
            projected = settings.sentence_transformers == "projected"
            return module.sentence_head(projected=projected)
    raise RecipeError(
        "export.sentence_transformers: no objective of the recipe makes sentence vectors. Add moco "
        "to a parallel stream, or export none."
    )
