"""Compare co-occurrence counts of word pairs and of their translations (MLM-GC, Figures 1 and 3).

    python -m benchmarks.cooccurrence_observation compare | plot | frequencies CORPUS ...

Reads a prepared corpus and counts its token pairs where they were not counted before; prints tables
and writes SVG figures.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benchmarks.cooccurrence_observation import compounds
from benchmarks.cooccurrence_observation.compounds import LanguagePair, bin_compounds
from benchmarks.cooccurrence_observation.figures import plot_compounds, plot_frequencies
from isoglot.cli.console import StageProgress, print_table
from isoglot.cli.cooccurrence import CORPUS, WORKERS
from isoglot.cli.options import parse_settings, split_names
from isoglot.corpus import Corpus
from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.cooccurrence_observation.compounds import CompoundCounts

app = typer.Typer(
    help="Compare co-occurrence counts of word pairs and of their translations (MLM-GC).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PAIR = typer.Option(
    ..., "--languages", "-l", help="Two languages of the corpus, joined by a dash: de-en."
)
_WINDOWS = typer.Option("1,2,3,4", help="Window sizes to compare, separated by commas.")
_SETTINGS = typer.Option(
    [], "--set", help="Change a setting of the counts: weights=released. May be repeated."
)
_OUT = typer.Option(Path("figure.svg"), "--out", "-o", help="Path of the figure (SVG).")


@app.command()
def compare(
    corpus: Path = CORPUS,
    compound: str = typer.Argument(..., help="Two words of the first language: 'ist die'."),
    translation: str = typer.Argument(..., help="Their translation, two words: 'is the'."),
    languages: str = _PAIR,
    related: list[str] = typer.Option([], help="Two words of similar meaning: 'is a'."),
    unrelated: list[str] = typer.Option([], help="Two words of other meaning: 'locally known'."),
    windows: str = _WINDOWS,
    workers: int | None = WORKERS,
    settings: list[str] = _SETTINGS,
) -> None:
    """Compare the count of one word pair with those of its translation and of other pairs."""
    columns: list[list[str]] = []
    others = [("translation", translation)]
    others += [("related", two) for two in related] + [("unrelated", two) for two in unrelated]
    for window in _numbers(windows):
        pair = _languages(corpus, languages, window, workers, settings)
        mine = pair.log_count(0, _two(compound))
        logs = [pair.log_count(1, _two(two)) for _, two in others] + [pair.log_average(1)]
        columns.append([f"{abs(mine - log):.2f}" for log in logs])
    names = [*others, ("average", f"of {languages.rpartition('-')[2]}")]
    rows = [[*name, *cells] for name, cells in zip(names, zip(*columns, strict=True), strict=True)]
    print(f"|log a - log b|, a: {compound}\n")
    print_table(["", "b", *(f"n = {window}" for window in _numbers(windows))], rows)


@app.command()
def plot(
    corpus: Path = CORPUS,
    languages: str = _PAIR,
    phrase_table: Path | None = typer.Option(
        None, help="Phrase table: lines 'ist die ||| is the ||| scores', or two columns with a tab."
    ),
    min_score: float = typer.Option(0.0, help="Phrase table: minimum of the third score."),
    lexicon: Path | None = typer.Option(
        None, help="Bilingual dictionary: a word and its translation on each line."
    ),
    alignments: tuple[Path, Path, Path] | None = typer.Option(
        None, help="Word alignments: two texts, line by line, and their links (0-0 1-2)."
    ),
    windows: str = _WINDOWS,
    num_bins: int = typer.Option(12, min=2, help="Bins of log a + log b."),
    control: bool = typer.Option(True, help="Add a control line: translations shuffled."),
    out: Path = _OUT,
    workers: int | None = WORKERS,
    settings: list[str] = _SETTINGS,
) -> None:
    """Plot how far counts of word pairs are from counts of their translations (Figure 1).

    By bins of log a + log b: the mean of |log a - log b|, and of its ratio to the sum, with 95 %
    confidence bands, for each window. Words must be single tokens of the corpus's vocabulary.
    """

    observe = _source(phrase_table, min_score, lexicon, alignments)
    lines, rows, last = {}, [], None
    for window in _numbers(windows):
        last = observe(_languages(corpus, languages, window, workers, settings))
        lines[f"n = {window}"] = bin_compounds(last, num_bins)
        rows += [_row(f"n = {window}", last)]
    if control and last is not None:
        label = f"n = {_numbers(windows)[-1]}, shuffled"
        lines[label] = bin_compounds(last.shuffled(), num_bins)
        rows += [_row(label, last.shuffled())]
    print_table(["", "word pairs", "|log a - log b|", "its ratio", "dropped"], rows)
    _write(out, plot_compounds(lines, title=f"Word pairs and their translations, {languages}"))


@app.command()
def frequencies(
    corpus: Path = CORPUS,
    languages: str = typer.Option(
        "", "--languages", "-l", help="Language codes, separated by commas.", show_default="all"
    ),
    out: Path = _OUT,
) -> None:
    """Plot the token frequencies of each language by rank (Figure 3)."""

    opened = Corpus.open(corpus, verify="never")
    codes = split_names(languages) if languages else list(opened.languages)
    _write(
        out, plot_frequencies({code: compounds.token_frequencies(opened, code) for code in codes})
    )


def _languages(
    corpus: Path, languages: str, window: int, workers: int | None, settings: list[str]
) -> LanguagePair:
    """The two languages with their pair counts."""

    first, dash, second = languages.partition("-")
    if not dash:
        raise typer.BadParameter(f"{languages!r} is not two languages with a dash: de-en")
    config = PairConfig(**{**parse_settings(settings, PairConfig), "window": window})
    with StageProgress() as progress:
        return LanguagePair(
            Corpus.open(corpus, verify="never"),
            (first, second),
            config,
            workers=workers or os.cpu_count() or 1,
            progress=progress,
        )


def _source(
    phrase_table: Path | None,
    min_score: float,
    lexicon: Path | None,
    alignments: tuple[Path, Path, Path] | None,
) -> Callable[[LanguagePair], CompoundCounts]:
    """A function that reads the word pairs from the one source given."""

    if sum(given is not None for given in (phrase_table, lexicon, alignments)) != 1:
        raise typer.BadParameter("give one of --phrase-table, --lexicon and --alignments")
    if lexicon is not None:
        entries = compounds.read_lexicon(lexicon)
        return lambda pair: pair.count_lexicon(entries)
    if phrase_table is not None:
        found = compounds.read_phrase_table(phrase_table, min_score=min_score)
    else:
        assert alignments is not None
        found = compounds.read_alignments(*alignments)
    return lambda pair: pair.count_compounds(found)


def _row(label: str, observed: CompoundCounts) -> list[str]:
    """All word pairs of one window as a row of the printed table."""

    (whole,) = bin_compounds(observed, 1)
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in observed.dropped.items())
    return [
        label,
        f"{whole.num_compounds:,}",
        f"{whole.difference:.3f} ± {whole.difference_half:.3f}",
        f"{whole.ratio:.3f} ± {whole.ratio_half:.3f}",
        dropped,
    ]


def _numbers(windows: str) -> list[int]:
    try:
        return [int(number) for number in windows.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{windows!r} is not numbers with commas: 1,2,3,4") from None


def _two(compound: str) -> tuple[str, str]:
    words = compound.split()
    if len(words) != 2:
        raise typer.BadParameter(f"{compound!r} is not two words")
    return words[0], words[1]


def _write(out: Path, figure: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(figure, encoding="utf-8")
    print(f"figure: {out}")


def main() -> None:
    """Run the command line; errors of the corpus are printed as one sentence."""
    try:
        app(prog_name="python -m benchmarks.cooccurrence_observation")
    except IsoglotError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
