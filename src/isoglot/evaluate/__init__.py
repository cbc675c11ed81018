"""Judging an encoder across languages. Reads a Hugging Face folder; gives scores."""

from isoglot.evaluate.embed import embed
from isoglot.evaluate.nearest import nearest
from isoglot.evaluate.retrieval import accuracies, best_layer, retrieval
from isoglot.evaluate.settings import FeatureSettings

__all__ = [
    "FeatureSettings",
    "accuracies",
    "best_layer",
    "embed",
    "nearest",
    "retrieval",
]
