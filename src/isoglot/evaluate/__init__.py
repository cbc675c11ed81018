"""Judging an encoder across languages. Reads a Hugging Face folder; gives scores."""

from isoglot.evaluate.embed import embed
from isoglot.evaluate.retrieval import RETRIEVAL, accuracies, best_layer, retrieval

__all__ = ["RETRIEVAL", "accuracies", "best_layer", "embed", "retrieval"]
