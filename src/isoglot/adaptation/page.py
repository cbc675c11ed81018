"""How scores before and after are shown: rows of a table, and the page of an adaptation.

The rows are printed and on the model cards. The page has the scores, curves, the plan, and how to
use the model: one HTML file without links to others; its template is `report/templates/adapt.html`.
"""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from isoglot.adaptation.comparison import (
    ALIGNMENT,
    BITS,
    ENTITIES,
    ENTITIES_HEADS,
    OBJECTS,
    OBJECTS_HEADS,
    RETRIEVAL,
    TOKENS,
    VECTORS,
)
from isoglot.adaptation.findings import num_cores
from isoglot.atomic import write_text
from isoglot.pretraining.monitoring.writers import read_records
from isoglot.progress import duration
from isoglot.report.page import render
from isoglot.report.training import heldout_figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.adaptation.comparison import AdaptScores, Comparison
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.plan_files import AdaptPlan
    from isoglot.adaptation.request import AdaptConfig

HEADINGS = ("score", "language", "before", "after", "change (95 % interval)", "")
"""Of the table before and after, printed and on the card."""
_NO_INTERVAL = "no interval: other programs change it"
_EXPLAINED = {
    BITS: "What a held-out character costs the masked language model to predict: lower is better. "
    "It compares models of different vocabularies.",
    RETRIEVAL: "Share of sentences whose nearest sentence of the other language is their "
    "translation, of the mean state of a layer: higher is better.",
    VECTORS: "The same, the mean of both directions, with the vectors that sentence-transformers "
    "gives: what a user of the folder gets.",
    ALIGNMENT: "Links between the words of translations against gold links: lower is better.",
    ENTITIES: "Share of masked names on held-out pages whose nearest description in the other "
    "language is that of their entity, by the states of a layer: higher is better.",
    ENTITIES_HEADS: "The same with the trained heads of masked entity prediction, which the folder "
    "has in objective_heads.safetensors.",
    OBJECTS: "Share of held-out facts whose object's description in the other language is nearest "
    "to the subject's, by the states of a layer: higher is better.",
    OBJECTS_HEADS: "The same with the trained heads of object entailment, which know the relation.",
    TOKENS: "Tokens that a word is split into: lower is better. It changes only where the "
    "vocabulary grew.",
}
_FILES = (
    ("model", "the encoder, for transformers; README.md is its model card"),
    ("sentence-transformers", "the encoder with its pooling, for sentence-transformers"),
    ("scores.json", "the scores on this page"),
    ("plan", "prepare.yaml and recipe.yaml, for isoglot prepare and isoglot pretrain"),
    ("heldout", "the lines and pairs of the scores; test data, keep them out of any training"),
    ("linking", "held-out mentions and facts, for isoglot evaluate --data"),
    ("development", "held-out pairs of the corpus, on which layers were chosen"),
    ("run", "checkpoints, metrics.jsonl and TensorBoard files of the training"),
    ("corpus", "the prepared corpus"),
    ("encoder", "the encoder with added words, before training"),
)


def write_adapt_page(
    config: AdaptConfig,
    plan: AdaptPlan,
    folder: AdaptFolder,
    scores: AdaptScores,
) -> None:
    """Write the page to OUT/report.html."""
    write_text(folder.report, adapt_page(config, plan, folder, scores))


def adapt_page(
    config: AdaptConfig,
    plan: AdaptPlan,
    folder: AdaptFolder,
    scores: AdaptScores,
) -> str:
    """The HTML of the page."""
    name = folder.path.resolve().name
    return render(
        "adapt.html",
        f"{name}: {config.encoder} before and after",
        languages={},
        encoder=config.encoder,
        worse=scores.worse,
        better=sum(one.verdict == "better" for one in scores.comparisons),
        total=len(scores.comparisons),
        metrics=[
            (metric, _EXPLAINED[metric], scores.of(metric))
            for metric in dict.fromkeys(one.metric for one in scores.comparisons)
        ],
        shown=values,
        change=change,
        interval=interval,
        examples_of={
            **dict.fromkeys((BITS, TOKENS), "lines"),
            **dict.fromkeys((ENTITIES, ENTITIES_HEADS), "mentions"),
            **dict.fromkeys((OBJECTS, OBJECTS_HEADS), "facts"),
        },
        verdict=verdict,
        speed=scores.speed,
        machine=_machine(),
        training=_training_time(folder.run / "metrics.jsonl"),
        figures=heldout_figures(folder.run),
        decisions=plan.decisions,
        edited=plan.edited,
        choices=scores.choices,
        examples=_examples(folder),
        files=[(path, content) for path, content in _FILES if (folder.path / path).exists()],
    )


def _training_time(metrics: Path) -> str:
    """How long the steps took, in all commands: a training that was continued took several."""
    records = [one for one in read_records(metrics, until=sys.maxsize) if "seconds" in one]
    if not records:
        return ""
    mean = sum(float(one["seconds"]) for one in records) / len(records)
    steps = int(records[-1]["step"])
    return (
        f"Training took {duration(mean * steps)}: {steps:,} steps of {mean:.2g} s, validation and "
        "checkpoints apart."
    )


def _examples(folder: AdaptFolder) -> list[tuple[str, str]]:
    model, sentences = folder.model, folder.sentence_model
    examples = [
        (
            "transformers",
            (
                "from transformers import AutoModelForMaskedLM, AutoTokenizer\n"
                f'tokenizer = AutoTokenizer.from_pretrained("{model}")\n'
                f'model = AutoModelForMaskedLM.from_pretrained("{model}")'
            ),
        ),
        (
            "sentence-transformers",
            (
                "from sentence_transformers import SentenceTransformer\n"
                f'model = SentenceTransformer("{sentences}")\n'
                'vectors = model.encode(["A sentence.", "Another one."])'
            ),
        ),
    ]
    return examples if sentences.is_dir() else examples[:1]


def _machine() -> str:
    """The GPU, or else the processor and its cores."""
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.processor() or platform.machine()}, {num_cores()} cores"


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


def verdict(one: Comparison) -> str:
    """In words: what the interval says."""
    if one.verdict != "same":
        return one.verdict
    return "no clear change" if one.difference or one.high else "unchanged"


def _scaled(one: Comparison, difference: float) -> str:
    scale = 100.0 if one.is_share else 100 / max(abs(one.before), 1e-9)
    return f"{scale * difference:+.1f}"


def _number(one: Comparison, value: float) -> str:
    return f"{100 * value:.1f} %" if one.is_share else f"{value:.3f}"
