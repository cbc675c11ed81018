"""Held-out translations that a pooling is chosen on: of a prepared corpus, or TSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.batching.mixture import evenly_spaced
from isoglot.evaluation.pairs import read_pairs
from isoglot.evaluation.tokenize_texts import special_tokens, tokenize_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.corpus import Corpus

    Pairs = dict[str, tuple[list[list[int]], list[list[int]]]]

MAX_PAIRS = 500
"""Pairs of sentences of each pair of languages that poolings are compared on."""
_MIN_PAIRS = 20
"""Pairs of languages with fewer held-out pairs say nothing."""


def pairs_of_files(
    files: Sequence[Path], tokenizer: Any, max_length: int, note: Callable[[str], None]
) -> Pairs:
    """The tokenized pairs of TSV files that are named after their languages (en-sw.tsv)."""
    found: Pairs = {}
    for name, sides in read_pairs(files, MAX_PAIRS, note=note).items():
        first, second = (tokenize_texts(tokenizer, side, max_length) for side in sides)
        found[name] = first, second
    return found


def pairs_of_corpus(corpus: Corpus, tokenizer: Any, max_length: int) -> Pairs:
    """The held-out pairs of a corpus with the model's tokenizer; empty where it has too few."""
    begin, end = special_tokens(tokenizer)
    found: Pairs = {}
    for source in corpus.sources("pairs"):
        for name, splits in corpus.manifest.sources[source].languages.items():
            if "heldout" not in splits:
                continue
            rows = corpus.table(source, name, "heldout")
            sides = found.setdefault(name, ([], []))
            for row in evenly_spaced(rows.num_rows, MAX_PAIRS - len(sides[0])).tolist():
                for side, column in zip(sides, ("first", "second"), strict=True):
                    ids = rows.ids(column, row).tolist()[: max_length - len(begin) - len(end)]
                    side.append([*begin, *ids, *end])
    return {name: sides for name, sides in found.items() if len(sides[0]) >= _MIN_PAIRS}
