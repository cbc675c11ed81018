"""The model card of an adapted encoder: what a run's card has, and the scores before and after.

The header has a `model-index`, which the Hugging Face hub shows beside the model. Its numbers are
those after the adaptation, on held-out data of the user; the table on the card has both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.adaptation.comparison import ALIGNMENT, BITS, RETRIEVAL, VECTORS
from isoglot.languages import bcp47
from isoglot.models.model_card import is_hub_name, library_of, table, tags_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from huggingface_hub import EvalResult

    from isoglot.adaptation.comparison import AdaptScores, Comparison
    from isoglot.models.model_card import CardKind, ModelCard

HEADINGS = ("score", "language", "before", "after", "change (95 % interval)", "")
"""Of the table before and after, printed and on the card."""
_INDEXED = {
    BITS: ("fill-mask", "bits-per-character"),
    RETRIEVAL: ("sentence-similarity", "accuracy"),
    VECTORS: ("sentence-similarity", "accuracy"),
    ALIGNMENT: ("token-classification", "alignment-error-rate"),
}
"""Metric -> the hub's task and the type of the metric; others are on the card only."""


def adapted_card(
    card: ModelCard, scores: AdaptScores, kind: CardKind, *, pooling: str | None = None
) -> str:
    """README.md of a folder of the adapted encoder."""
    return card.render(
        kind, pooling, header=header(card, scores, kind), sections=score_sections(scores)
    )


def header(card: ModelCard, scores: AdaptScores, kind: CardKind) -> str:
    """The front matter with languages, license, base model and a model-index."""
    from huggingface_hub import ModelCardData

    base = card.init_from if card.init_from and is_hub_name(card.init_from) else None
    data = ModelCardData(
        language=list(dict.fromkeys(bcp47(code) for code in sorted(card.languages))),
        license=card.license,
        library_name=library_of(kind),
        pipeline_tag=kind,
        base_model=base,
        tags=tags_of(kind),
        model_name=card.name,
        eval_results=eval_results(scores, kind),
    )
    return f"---\n{data.to_yaml()}\n---"


def eval_results(scores: AdaptScores, kind: CardKind) -> list[EvalResult]:
    """The scores after the adaptation as the hub's evaluation results."""
    from huggingface_hub import EvalResult

    left_out = RETRIEVAL if kind == "sentence-similarity" else VECTORS
    found = []
    for one in scores.comparisons:
        if one.metric in _INDEXED and one.metric != left_out:
            task, metric = _INDEXED[one.metric]
            gold = one.metric == ALIGNMENT
            found.append(
                EvalResult(
                    task_type=task,
                    dataset_type="gold-word-alignments" if gold else "held-out",
                    dataset_name=f"{'gold word alignments' if gold else 'held-out data'}, "
                    f"{one.where}",
                    dataset_config=one.where,
                    metric_type=metric,
                    metric_value=round(one.after, 6),
                    metric_name=f"{one.metric}, {one.where}",
                )
            )
    return found


def score_sections(scores: AdaptScores) -> list[str]:
    """The table before and after in Markdown, and what was chosen on which data."""
    rows = terminal_rows(scores)
    explained = (
        "On lines and pairs that were held out before anything else. What got worse comes first "
        "within each metric. Intervals are paired bootstraps over lines or pairs."
    )
    parts = ["## Before and after", explained, table(HEADINGS, rows)]
    if scores.choices:
        parts.append(
            "\n".join(
                f"- {one.what}: {one.choice}. Chosen on {one.data}." for one in scores.choices
            )
        )
    return parts


def values(one: Comparison) -> tuple[str, str]:
    """Before and after, as they are printed."""
    return _number(one, one.before), _number(one, one.after)


def change(one: Comparison) -> str:
    """After less before: in points, or in percent of before."""
    if not (one.difference or one.low or one.high):
        return "0"
    return f"{_scaled(one, one.difference)} {'points' if one.is_share else '%'}"


def interval(one: Comparison) -> str:
    """The interval of the change; empty where nothing has changed."""
    if not (one.difference or one.low or one.high):
        return ""
    return f"{_scaled(one, one.low)} to {_scaled(one, one.high)}"


def change_and_interval(one: Comparison) -> str:
    """Both, on one line."""
    found = interval(one)
    return f"{change(one)} ({found})" if found else change(one)


def _scaled(one: Comparison, difference: float) -> str:
    scale = 100.0 if one.is_share else 100 / max(abs(one.before), 1e-9)
    return f"{scale * difference:+.1f}"


def verdict(one: Comparison) -> str:
    """In words: what the interval says."""
    if one.verdict != "same":
        return one.verdict
    return "no clear change" if one.difference or one.high else "unchanged"


def _number(one: Comparison, value: float) -> str:
    return f"{100 * value:.1f} %" if one.is_share else f"{value:.3f}"


_NO_INTERVAL = "no interval: other programs change it"


def terminal_rows(scores: AdaptScores) -> Sequence[tuple[str, ...]]:
    """The rows of the table that is printed, and on the card."""
    rows: list[tuple[str, ...]] = [
        (one.metric, one.where, *values(one), change_and_interval(one), verdict(one))
        for one in scores.comparisons
    ]
    before, after = scores.speed
    return [
        *rows,
        ("sentences per second", "", f"{before:,.0f}", f"{after:,.0f}", _NO_INTERVAL, ""),
    ]
