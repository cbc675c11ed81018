"""Who scores which kind of task, for kinds that read features of a model as it is.

Kinds that must be fine-tuned are not here: see `run.evaluate_tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.evaluate.alignment import score_alignment
from isoglot.evaluate.analogy import score_analogy
from isoglot.evaluate.lexicon import score_lexicon
from isoglot.evaluate.mining import score_mining
from isoglot.evaluate.probing import score_probe
from isoglot.evaluate.retrieval import score_retrieval
from isoglot.evaluate.similarity import score_similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isoglot.tasks.base import Kind

SCORERS: Mapping[Kind, Callable[..., Any]] = {
    "retrieval": score_retrieval,
    "mining": score_mining,
    "alignment": score_alignment,
    "lexicon": score_lexicon,
    "analogy": score_analogy,
    "similarity": score_similarity,
    "probe": score_probe,
}
"""Each takes (encoder, tokenizer, task, parts, settings) and gives the scores of all layers."""
