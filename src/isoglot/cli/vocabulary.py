"""`isoglot vocabulary`: a model with more tokens, or with the ones that are used."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app
from isoglot.cli.transplant import (
    DICTIONARIES,
    OUT,
    SETTINGS,
    SOURCE,
    show_report,
    with_dictionaries,
)

vocabulary = typer.Typer(
    help="Grow a model's vocabulary by words, or trim it to the tokens that some text uses.",
    no_args_is_help=True,
)
app.add_typer(vocabulary, name="vocabulary")


@vocabulary.command()
def grow(
    source: Path = SOURCE,
    words: Path | None = typer.Option(None, "--words", "-w", help="A file with a word a line."),
    text: list[Path] = typer.Option(
        [],
        "--text",
        help="Text of a new language, a sentence a line: its most useful words are added. May be "
        "given several times.",
    ),
    number: int = typer.Option(5000, min=1, help="Most words to take from the text."),
    dictionary: list[Path] = DICTIONARIES,
    out: Path = OUT,
    settings: list[str] = SETTINGS,
) -> None:
    """Add words to a model; its other tokens, and how text without the words is split, stay.

    A word begins as the token that spells the same, as its translation, or as the mean of its
    pieces.
    """
    from isoglot.cli.asking import changed
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.models.transplant import Tokens, TransplantConfig, read_words, split_words
    from isoglot.models.transplant import grow as run

    if words is None and not text:
        raise typer.BadParameter("give --words, a file of words, or --text to take them from")
    without_bars_of_others()
    chosen = [] if words is None else read_words(words)
    if text:
        chosen += split_words(Tokens.open(source), text, number)
    asked = {"fallback": "pieces", **changed(settings, TransplantConfig)}
    show_report(run(source, out, chosen, with_dictionaries(TransplantConfig(**asked), dictionary)))
    print(f"\nmodel: {out}")


@vocabulary.command()
def trim(
    source: Path = SOURCE,
    text: list[Path] = typer.Option(
        ..., "--text", help="Text, a sentence a line, in any language. May be given several times."
    ),
    min_count: int = typer.Option(1, min=1, help="Keep tokens that are at least so often in it."),
    out: Path = OUT,
) -> None:
    """Keep the tokens that some text uses, in the model and in its tokenizer.

    Text that needs no other tokens is split as before and gets the same logits.
    """
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.models.transplant import trim as run

    without_bars_of_others()
    show_report(run(source, out, texts=text, min_count=min_count))
    print(f"\nmodel: {out}")
