"""A prepared corpus at a glance: counts, drop reasons, sampling probabilities, decoded lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.cli.knowledge_tables import has_knowledge, show_knowledge
from isoglot.cli.prepare import show_manifest
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus


def show_corpus(corpus: Corpus, *, alpha: float, samples: int) -> None:
    """Print what a corpus holds."""
    show_manifest(corpus.manifest)
    entry = corpus.manifest.tokenizer
    print(f"\ntokenizer: {entry.size:,} pieces; fingerprint of the corpus: {corpus.fingerprint}")
    print(f"\nHow often each language is drawn with alpha = {alpha:g}, N counted in sentences:\n")
    print_table(["sources of kind", "language", "share of N", "drawn"], _draws(corpus, alpha))
    if has_knowledge(corpus):
        print("\nKnowledge of entities, from Wikipedia and Wikidata:\n")
        show_knowledge(corpus.knowledge, alpha=alpha)
    if samples > 0:
        print("\nSome lines for training, decoded from their token ids:\n")
        print_table(["source", "language", "text"], _lines(corpus, samples))


def _draws(corpus: Corpus, alpha: float) -> Iterator[list[str]]:
    """Each language's share of the sentences, and the probability of drawing it."""
    from isoglot.batching.mixture import smoothed

    for kind in sorted({source.kind for source in corpus.manifest.sources.values()}):
        counts: dict[str, int] = {}
        for name in corpus.sources(kind):
            for language, splits in corpus.manifest.sources[name].languages.items():
                if splits["train"].rows:
                    counts[language] = counts.get(language, 0) + splits["train"].rows
        numbers = np.array(list(counts.values()), dtype=np.float64)
        for language, share, drawn in zip(
            counts, numbers / numbers.sum(), smoothed(numbers, alpha), strict=True
        ):
            yield [kind, language, f"{100 * share:.1f} %", f"{100 * drawn:.1f} %"]


def _lines(corpus: Corpus, samples: int) -> Iterator[list[str]]:
    """Rows of every (source, language), spread evenly over its training split, as text again."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(corpus.tokenizer_folder / "tokenizer.json"))
    for name, source in corpus.manifest.sources.items():
        for language in source.languages:
            table = corpus.table(name, language, "train")
            rows = np.linspace(0, table.num_rows - 1, min(samples, table.num_rows)).astype(int)
            for row in rows.tolist():
                sides = [
                    tokenizer.decode(table.ids(column, row).tolist(), skip_special_tokens=False)
                    for column in table.columns
                ]
                yield [name, language, "  |  ".join(sides)]
