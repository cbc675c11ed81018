"""`isoglot cooccurrence`: count token pairs and find phrases of a corpus ahead of training."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.console import StageProgress, print_table
from isoglot.cli.options import CLUSTER
from isoglot.cli.outputs import output_file, output_folder

cooccurrence = typer.Typer(
    help="Count token pairs (MLM-GC) and find phrases of high PMI ahead of training.",
    no_args_is_help=True,
)
app.add_typer(cooccurrence, name="cooccurrence")

CORPUS = typer.Argument(..., help="A prepared corpus.")
WORKERS = typer.Option(
    None,
    min=1,
    max=1024,
    help="Worker threads; on a cluster, tasks of one machine at a time, which share the memory.",
    show_default="the machine's cores",
)

_COUNT = r"""
Examples:

    isoglot cooccurrence count corpora/mine

    isoglot cooccurrence count corpora/mine --set window=3 --workers 8

Settings: window, weights (paper, released), language_constants, pivot_language, languages, sources,
min_count, dtype (float32, float16), memory_mib. Training finds counts by the settings of its
recipe: objectives.cooccurrence.pairs.
"""
_PHRASES = r"""
Example:

    isoglot cooccurrence phrases corpora/mine --out phrases.npy

Settings: max_length, min_count, max_phrases, max_text_tokens.
"""


@cooccurrence.command(epilog=_COUNT)
def count(
    corpus: Path = CORPUS,
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Folder of the counts.",
        show_default="in the corpus",
        callback=output_folder,
    ),
    workers: int | None = WORKERS,
    cluster: str = CLUSTER,
    settings: list[str] = typer.Option(
        [],
        "--set",
        help="Change a setting: window=3, min_count=1.0, dtype=float16. May be repeated.",
    ),
) -> None:
    """Count the token pairs of a corpus. Training does the same where no counts are found.

    An interrupted count is resumed; finished counts are reused.
    """
    from isoglot.cli.options import parse_settings
    from isoglot.corpus import Corpus
    from isoglot.corpus.cooccurrence.count import count_pairs
    from isoglot.corpus.cooccurrence.pair_table import PairConfig

    config = PairConfig(**parse_settings(settings, PairConfig))
    opened, workers = Corpus.open(corpus), workers or os.cpu_count() or 1
    with StageProgress() as progress:
        table = count_pairs(
            opened, config, out, workers=workers, cluster=cluster, progress=progress
        )
    print(f"{len(table.keys):,} pairs of {table.vocabulary_size:,} tokens; window {config.window}")
    print_table(
        ["language", "constant, by which its counts are multiplied"],
        [[code, f"{c:.3f}"] for code, c in table.language_constants.items()],
    )


@cooccurrence.command(epilog=_PHRASES)
def phrases(
    corpus: Path = CORPUS,
    out: Path = typer.Option(
        ..., "--out", "-o", help="Path of the phrase list (.npy).", callback=output_file
    ),
    samples: int = typer.Option(5, min=0, help="Phrases of each length to print."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: max_length=4, min_count=20. May be repeated."
    ),
) -> None:
    """Find the n-grams of high PMI of a corpus, for masking: {unit: pmi, phrases: FILE}.

    Training with unit: pmi does the same where the recipe names no file.
    """
    from isoglot.cli.options import parse_settings
    from isoglot.corpus import Corpus
    from isoglot.corpus.cooccurrence.find_phrases import find_phrases
    from isoglot.corpus.cooccurrence.phrases import PhraseConfig

    config = PhraseConfig(**parse_settings(settings, PhraseConfig))
    opened = Corpus.open(corpus)
    with StageProgress() as progress:
        found = find_phrases(opened, config, out, progress=progress)
    pieces = opened.token_texts() if samples else []
    rows = []
    for n in range(2, found.table.shape[1] + 1):
        whole = found.table[(found.table >= 0).sum(axis=1) == n][:, :n]
        shown = whole[:: max(len(whole) // max(samples, 1), 1)][:samples].tolist()
        examples = ["|".join(pieces[token] for token in phrase) for phrase in shown]
        rows.append([str(n), f"{len(whole):,}", "   ".join(examples)])
    print_table(["tokens", "phrases", "examples"], rows)
    print(f"\nphrases: {out}")
