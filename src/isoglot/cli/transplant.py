"""`isoglot transplant`: an existing model with another tokenizer's vocabulary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from isoglot.models.transplant import Report, TransplantConfig

DICTIONARIES = typer.Option(
    [],
    "--dictionary",
    "-d",
    help="A file with a word and its translation on each line, in any order of the languages. "
    "May be given several times.",
)
SETTINGS = typer.Option(
    [], "--set", help="Change a setting: fallback=pieces. May be given several times."
)
OUT = typer.Option(..., "--out", "-o", help="Folder of the new model.")
SOURCE = typer.Argument(..., help="A Hugging Face folder: a masked language model, its tokenizer.")

_EXAMPLE = """
Examples:

    isoglot transplant models/roberta-base --tokenizer models/xlm-roberta-base --out models/start

    isoglot transplant models/english -t corpora/mine/tokenizer -d en-sw.txt -o models/start

Settings: initialise (both, body, embeddings, none), fallback (random, pieces, zero), translations
(mean, first), dictionaries, source_column (either, first, second), max_broken, positions, seed.
"""


@app.command(epilog=_EXAMPLE)
def transplant(
    source: Path = SOURCE,
    tokenizer: Path = typer.Option(
        ..., "--tokenizer", "-t", help="Folder of the tokenizer whose vocabulary it gets."
    ),
    dictionary: list[Path] = DICTIONARIES,
    out: Path = OUT,
    settings: list[str] = SETTINGS,
) -> None:
    """Give a model the vocabulary of another tokenizer: the start of a cross-lingual one (MetaXLM).

    Its body stays. Each new token begins as the source's token that spells the same, or as its
    translation's; the table says how many did.
    """
    from isoglot.cli.asking import changed
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.models.transplant import TransplantConfig
    from isoglot.models.transplant import transplant as run

    without_bars_of_others()
    config = with_dictionaries(TransplantConfig(**changed(settings, TransplantConfig)), dictionary)
    show_report(run(source, tokenizer, out, config))
    print(f"\nmodel: {out}")


def with_dictionaries(config: TransplantConfig, files: list[Path]) -> TransplantConfig:
    """The settings with these dictionaries too."""
    return replace(config, dictionaries=(*config.dictionaries, *map(str, files)))


def show_report(report: Report) -> None:
    """Print how tokens were matched, what dictionaries gave, and sizes before and after."""
    total = sum(report.kinds.values())
    rows = [
        [kind, f"{number:,}", f"{100 * number / total:.1f} %", _some(report.examples.get(kind, []))]
        for kind, number in report.kinds.items()
    ]
    print_table(["from", "tokens", "share", "such as"], rows)
    if report.dictionaries:
        print()
        print_table(
            ["dictionary", "entries", "dropped"],
            [
                [
                    counts.file,
                    f"{counts.entries:,}",
                    ", ".join(f"{number:,} {reason}" for reason, number in counts.dropped.items()),
                ]
                for counts in report.dictionaries
            ],
        )
    print()
    print_table(
        ["", "tokens", "parameters", "MB"],
        [
            [name, f"{size.tokens:,}", f"{size.parameters:,}", f"{size.bytes / 1e6:.1f}"]
            for name, size in (("before", report.before), ("after", report.after))
        ],
    )
    for note in report.notes:
        print(note)


def _some(examples: list[str]) -> str:
    """A few examples that fit a line."""
    return ", ".join(example for example in examples[:3] if len(example) <= 24)
