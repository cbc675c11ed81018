"""`isoglot transplant` and `isoglot vocabulary`: change the vocabulary of an existing model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.console import describe_counts, disable_progress_bars, print_table
from isoglot.cli.options import parse_settings
from isoglot.cli.outputs import output_folder
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from isoglot.models.transplant.config import TransplantConfig
    from isoglot.models.transplant.report import TransplantReport

vocabulary = typer.Typer(
    help="Add words to a model's vocabulary, or trim it to the tokens that given text uses.",
    no_args_is_help=True,
)
app.add_typer(vocabulary, name="vocabulary")

_SOURCE = typer.Argument(
    ..., help="A masked language model: a Hugging Face folder, a run (runs/NAME) or a hub name."
)
_OUT = typer.Option(..., "--out", "-o", help="Folder of the new model.", callback=output_folder)
_DICTIONARIES = typer.Option(
    [],
    "--dictionary",
    "-d",
    help="File with a word and its translation on each line, in either order. May be repeated.",
)
_SETTINGS = typer.Option([], "--set", help="Change a setting: fallback=subwords. May be repeated.")

_EXAMPLE = r"""
Examples:

    isoglot transplant models/roberta-base \
      --tokenizer models/xlm-roberta-base --out models/start

    isoglot transplant runs/english -t corpora/mine -d en-sw.txt \
      -o models/start

Settings: initialize (both, body, embeddings, none), fallback (random, subwords, zero), translations
(mean, first), order (dictionary, spelling), boundary, translation_subwords, strict, dictionaries,
source_column (auto, first, second, either), max_malformed_ratio, max_positions, seed.
"""

_GROW = r"""
Examples:

    isoglot vocabulary grow xlm-roberta-base --text sw.txt --number 5000 \
      --balance sw.txt --balance en.txt --out models/larger

    isoglot vocabulary grow runs/mine --words words.txt -d en-sw.txt \
      -o models/larger

The settings are those of `isoglot transplant`; fallback is `subwords` here.
"""
_TRIM = r"""
Example:

    isoglot vocabulary trim xlm-roberta-base --text en.txt --text sw.txt \
      --min-count 2 --out models/smaller
"""


@app.command(epilog=_EXAMPLE)
def transplant(
    source: Path = _SOURCE,
    tokenizer: Path = typer.Option(
        ...,
        "--tokenizer",
        "-t",
        help="The tokenizer with the new vocabulary: its folder, a corpus or a model.",
    ),
    dictionary: list[Path] = _DICTIONARIES,
    out: Path = _OUT,
    settings: list[str] = _SETTINGS,
) -> None:
    """Give a model the vocabulary of another tokenizer, as the start of a cross-lingual model.

    The body stays unchanged (MetaXLM). The vector of each new token is copied from its translation
    in a dictionary, or else from the source token with the same spelling; the printed table counts
    both.
    """
    from isoglot.models.transplant.config import TransplantConfig
    from isoglot.models.transplant.run import transplant as run

    disable_progress_bars()
    config = TransplantConfig(**parse_settings(settings, TransplantConfig))
    with lock_file(out):
        report = run(source, tokenizer, out, _add_dictionaries(config, dictionary))
    _print_report(report, out)


@vocabulary.command(epilog=_GROW)
def grow(
    source: Path = _SOURCE,
    words: Path | None = typer.Option(None, "--words", "-w", help="File with one word a line."),
    text: list[Path] = typer.Option(
        [],
        "--text",
        help="Text of a new language, one sentence a line, to choose words from. May be repeated.",
    ),
    number: int = typer.Option(5000, min=1, help="Maximum number of words chosen from the text."),
    balance: list[Path] = typer.Option(
        [],
        "--balance",
        help="Text of a language that the model is used with, new or old, one sentence a line: the "
        "output biases of the new words are fitted on all of it. May be repeated; each file counts "
        "as much. Default: the files of --text.",
    ),
    dictionary: list[Path] = _DICTIONARIES,
    out: Path = _OUT,
    settings: list[str] = _SETTINGS,
) -> None:
    """Add words to a model's vocabulary; text without these words is tokenized as before.

    The vector of a new word is that of its translation, that of the token with the same spelling,
    or the mean of its subwords. --text chooses the words that save most tokens; tokens per word of
    each text are printed before and after. With text, the LM head's bias of each new word is set so
    that its mean probability at masked tokens is its share of the tokens.
    """
    from isoglot.models.transplant.config import TransplantConfig
    from isoglot.models.transplant.run import grow as run
    from isoglot.models.transplant.used_tokens import read_words

    if words is None and not text:
        raise typer.BadParameter("give --words FILE, or --text FILE to choose words from")
    disable_progress_bars()
    given = [] if words is None else read_words(words)
    config = TransplantConfig(
        **{"fallback": "subwords", **parse_settings(settings, TransplantConfig)}
    )
    with lock_file(out):
        config = _add_dictionaries(config, dictionary)
        report = run(source, out, given, config, texts=text, number=number, balance=balance)
    _print_report(report, out)


@vocabulary.command(epilog=_TRIM)
def trim(
    source: Path = _SOURCE,
    text: list[Path] = typer.Option(
        ..., "--text", help="Text in any language, one sentence a line. May be repeated."
    ),
    min_count: int = typer.Option(1, min=1, help="Fewest occurrences of a token that is kept."),
    out: Path = _OUT,
) -> None:
    """Keep only the tokens that given text uses, in the model and in its tokenizer.

    Text that needs no other tokens is split as before and gets the same logits.
    """
    from isoglot.models.transplant.run import trim as run

    disable_progress_bars()
    with lock_file(out):
        report = run(source, out, texts=text, min_count=min_count)
    _print_report(report, out)


def _add_dictionaries(config: TransplantConfig, files: list[Path]) -> TransplantConfig:
    return replace(config, dictionaries=(*config.dictionaries, *map(str, files)))


def _print_report(report: TransplantReport, out: Path) -> None:
    """Print how tokens were matched, what dictionaries contributed, and sizes before and after."""
    total = sum(report.kinds.values())
    rows = []
    for kind, number in report.kinds.items():
        few = [example for example in report.examples.get(kind, [])[:3] if len(example) <= 24]
        rows.append([kind, f"{number:,}", f"{100 * number / total:.1f} %", ", ".join(few)])
    print_table(["from", "tokens", "share", "examples"], rows)
    if report.dictionaries:
        print()
        print_table(
            ["dictionary", "source's column", "entries", "dropped"],
            [
                [
                    counts.file,
                    counts.source_column,
                    f"{counts.entries:,}",
                    describe_counts(counts.dropped),
                ]
                for counts in report.dictionaries
            ],
        )
    if report.splits:
        print()
        print_table(
            ["text", "words", "tokens per word before", "after"],
            [
                [one.file, f"{one.words:,}"]
                + [f"{tokens / max(one.words, 1):.2f}" for tokens in (one.before, one.after)]
                for one in report.splits
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
    print(f"\nmodel: {out}")
