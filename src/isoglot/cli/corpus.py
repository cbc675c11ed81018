"""A prepared corpus at a glance: counts, drop reasons, sampling probabilities, decoded lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.cli.knowledge_tables import has_knowledge, show_knowledge
from isoglot.cli.prepare import show_manifest
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus import Corpus


def show_corpus(corpus: Corpus, *, alphas: Sequence[float], samples: int) -> None:
    """Print what a corpus holds."""
    from isoglot.report.corpus_view import draws, samples_of

    show_manifest(corpus.manifest)
    print(f"\nfingerprint of the corpus: {corpus.fingerprint}")
    print("\nHow often each language is drawn, p ∝ N^alpha, N counted in sentences:\n")
    print_table(
        ["sources of kind", "language", "share of N", *(f"alpha = {alpha:g}" for alpha in alphas)],
        (
            [draw.kind, draw.language, *(f"{100 * p:.1f} %" for p in (draw.share, *draw.drawn))]
            for draw in draws(corpus.manifest, alphas)
        ),
    )
    if has_knowledge(corpus):
        print("\nKnowledge of entities, from Wikipedia and Wikidata:\n")
        show_knowledge(corpus.knowledge, alphas=alphas)
    if samples > 0:
        print("\nSome lines for training, decoded from their token ids:\n")
        print_table(
            ["source", "language", "text"],
            (
                [sample.source, sample.language, "  |  ".join(sample.texts)]
                for sample in samples_of(corpus, samples)
            ),
        )


def write_page(corpus: Corpus, file: Path, *, alphas: Sequence[float], samples: int) -> None:
    """Write what a corpus holds as one HTML page."""
    from isoglot.report.corpus_page import corpus_page

    title = f"Corpus {corpus.folder.resolve().name}"
    text = corpus_page(corpus, alphas=alphas, samples=samples, title=title)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    print(f"\n{file} ({len(text.encode()) / 1e6:.1f} MB)")
