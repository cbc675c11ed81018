"""Development pairs of an adaptation: the held-out pairs of its corpus, as text.

Layers and poolings are chosen on them, never on the held-out data that the scores are of. The
corpus holds token ids, so texts are decoded; what a tokenizer normalizes (case, spaces) stays so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.adaptation.scores import score_pairs
from isoglot.atomic import replace_folder, write_text
from isoglot.batching.mixture import evenly_spaced
from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.errors import ModelError
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.pairs import read_pairs

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from rich.console import Console

    from isoglot.corpus import Corpus

MAX_PAIRS = 1000
"""Development pairs of each pair of languages."""


def write_development_pairs(corpus: Corpus, folder: Path) -> dict[str, int]:
    """Write `A-B.tsv` of each pair of languages with held-out pairs; gives how many there are."""
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    counts: dict[str, int] = {}
    with replace_folder(folder) as new:
        for name, rows in _heldout_pairs(corpus, tokenizer).items():
            if rows:
                counts[name] = len(rows)
                write_text(new / f"{name}.tsv", "".join(f"{a}\t{b}\n" for a, b in rows))
    return counts


def _heldout_pairs(corpus: Corpus, tokenizer: Any) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, dict[tuple[str, str], None]] = {}
    decode = text_decoder(tokenizer)
    for source in corpus.sources("pairs"):
        for name in corpus.manifest.sources[source].languages:
            table = corpus.table(source, name, "heldout")
            for row in evenly_spaced(table.num_rows, MAX_PAIRS).tolist():
                first, second = (
                    decode(table.ids(column, row).tolist()) for column in table.columns
                )
                # others would be left out of the scores: any model retrieves the same text
                if first and second and first.casefold() != second.casefold():
                    found.setdefault(name, {})[first, second] = None
    return {name: list(rows)[:MAX_PAIRS] for name, rows in found.items()}


def score_development(model: Path, folder: Path) -> dict[str, list[str]]:
    """Retrieval of a model on the development pairs, as `ModelScores.retrieval`."""
    files = sorted(folder.glob("*.tsv"))
    if not files:
        return {}
    encoder, tokenizer = load_for_scoring(model)
    pairs = read_pairs(files, MAX_PAIRS)
    return {name: score_pairs(encoder, tokenizer, name, sides) for name, sides in pairs.items()}


def export_sentences(model: Path, out: Path, folder: Path, console: Console) -> str:
    """Write the sentence-transformers folder of a model; gives its vectors in words.

    Pooling and layer are chosen on the development pairs. A model that such a folder cannot hold
    (language embeddings without position embeddings) gets none, a note says so, and the vectors
    are an empty text.
    """
    from isoglot.exporting.export import ExportOptions, export_model

    files = tuple(sorted(folder.glob("*.tsv")))
    options = ExportOptions(
        formats=("sentence-transformers",), pairs=files, pooling=None if files else "mean"
    )
    try:
        choice = export_model(model, out, options, console=console).pooling
    except ModelError as error:
        console.print(f"note: no {out.name}: {error}", highlight=False, soft_wrap=True)
        return ""
    assert choice is not None, "a sentence-transformers folder has a pooling"
    return choice.describe()
