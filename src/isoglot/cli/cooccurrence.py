"""`isoglot cooccurrence`: count pairs, find phrases, and look at what MLM-GC is built on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app
from isoglot.cli.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.cli.progress import Stages
    from isoglot.corpus import Corpus
    from isoglot.corpus.cooccurrence.observation import Languages, Observed

cooccurrence = typer.Typer(
    help="Count which tokens stand near each other, and see what languages share (MLM-GC).",
    no_args_is_help=True,
)
app.add_typer(cooccurrence, name="cooccurrence")

_CORPUS = typer.Argument(..., help="A prepared corpus.")
_PAIR = typer.Option(
    ..., "--languages", "-l", help="Two languages of the corpus, the compounds' first: de-en."
)
_WINDOWS = typer.Option("1,2,3,4", help="Neighbours on each side, several with commas.")
_SETTINGS = typer.Option(
    [],
    "--set",
    help="Change a setting of the counts: weights=released. May be given several times.",
)
_WORKERS = typer.Option(
    None, min=1, help="Chunks counted side by side.", show_default="the machine's cores"
)


@cooccurrence.command()
def count(
    corpus: Path = _CORPUS,
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Folder of the counts.", show_default="in the corpus"
    ),
    workers: int | None = _WORKERS,
    settings: list[str] = typer.Option(
        [],
        "--set",
        help="Change a setting: window=3, floor=1.0, kept=float16, memory=512.0. May be given "
        "several times.",
    ),
) -> None:
    """Count the pairs of a corpus. Training does so itself where it must; here it is done ahead.

    Counting that was stopped goes on where it was. Counts that are there are not made again.
    """
    from isoglot.cli.asking import changed
    from isoglot.corpus.cooccurrence import PairConfig, count_pairs

    config = PairConfig(**changed(settings, PairConfig))
    with _stages() as stages:
        table = count_pairs(_open(corpus), config, out, workers=_cores(workers), progress=stages)
    print(f"{len(table.keys):,} pairs of {table.size:,} tokens; window {config.window}")
    print_table(
        ["language", "constant"], [[code, f"{c:.3f}"] for code, c in table.constants.items()]
    )


@cooccurrence.command()
def phrases(
    corpus: Path = _CORPUS,
    out: Path = typer.Option(..., "--out", "-o", help="The file of phrases (.npy)."),
    samples: int = typer.Option(5, min=0, help="Phrases of each length to show."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting: longest=4, least=20. May be given several times."
    ),
) -> None:
    """Find the n-grams of high PMI of a corpus, for masking: {unit: pmi, phrases: FILE}.

    Training with unit: pmi finds them itself where no file is named; here it is done ahead.
    """
    from isoglot.cli.asking import changed
    from isoglot.corpus.phrases import PhraseConfig, find_phrases

    opened = _open(corpus)
    with _stages() as stages:
        found = find_phrases(
            opened, PhraseConfig(**changed(settings, PhraseConfig)), out, progress=stages
        )
    pieces = opened.pieces() if samples else []
    rows = []
    for n in range(2, found.table.shape[1] + 1):
        whole = found.table[(found.table >= 0).sum(axis=1) == n][:, :n]
        shown = whole[:: max(len(whole) // max(samples, 1), 1)][:samples].tolist()
        examples = ["|".join(pieces[token] for token in phrase) for phrase in shown]
        rows.append([str(n), f"{len(whole):,}", "   ".join(examples)])
    print_table(["tokens", "phrases", "such as"], rows)
    print(f"\nphrases: {out}")


@cooccurrence.command()
def compare(
    corpus: Path = _CORPUS,
    compound: str = typer.Argument(..., help="Two words of the first language: 'ist die'."),
    translation: str = typer.Argument(..., help="Two words of the second that mean it: 'is the'."),
    languages: str = _PAIR,
    related: list[str] = typer.Option([], help="Two words that mean something like it: 'is a'."),
    unrelated: list[str] = typer.Option([], help="Two words that do not: 'locally known'."),
    windows: str = _WINDOWS,
    workers: int | None = _WORKERS,
    settings: list[str] = _SETTINGS,
) -> None:
    """Set one compound beside its translation, others, and the average pair of the language."""
    columns: list[list[str]] = []
    others = [("translation", translation)]
    others += [("related", two) for two in related] + [("unrelated", two) for two in unrelated]
    for window in _numbers(windows):
        pair = _pair(_open(corpus), languages, window, workers, settings)
        mine = pair.log_count(0, _two(compound))
        logs = [pair.log_count(1, _two(two)) for _, two in others] + [pair.log_average(1)]
        columns.append([f"{abs(mine - log):.2f}" for log in logs])
    names = [*others, ("average", f"of {languages.rpartition('-')[2]}")]
    rows = [[*name, *cells] for name, cells in zip(names, zip(*columns, strict=True), strict=True)]
    print(f"|log a - log b|, a: {compound}\n")
    print_table(["", "b", *(f"n = {window}" for window in _numbers(windows))], rows)


@cooccurrence.command()
def draw(
    corpus: Path = _CORPUS,
    languages: str = _PAIR,
    phrase_table: Path | None = typer.Option(
        None, help="Compounds: lines 'ist die ||| is the ||| scores', or the two with a tab."
    ),
    least: float = typer.Option(0.0, help="Of a phrase table: least value of its third score."),
    lexicon: Path | None = typer.Option(
        None, help="Compounds of two entries: a dictionary, a word and its translation a line."
    ),
    aligned: tuple[Path, Path, Path] | None = typer.Option(
        None, help="Aligned bigrams: two texts, line by line, and their links (0-0 1-2)."
    ),
    windows: str = _WINDOWS,
    bins: int = typer.Option(12, min=2, help="Bins of the sum of logs."),
    control: bool = typer.Option(True, help="Add the compounds beside others' translations."),
    out: Path = typer.Option(Path("figure.svg"), "--out", "-o", help="The figure, an SVG file."),
    workers: int | None = _WORKERS,
    settings: list[str] = _SETTINGS,
) -> None:
    """Draw how far the counts of compounds are from those of their translations (Figure 1).

    By bins of log a + log b: the mean of |log a - log b|, and of its ratio to the sum, in bands of
    95 %, for each window. Words must be single tokens of the corpus's vocabulary.
    """
    from isoglot.corpus.cooccurrence.observation import by_bins
    from isoglot.report.cooccurrence import draw_compounds

    observe = _source(phrase_table, least, lexicon, aligned)
    lines, rows, last = {}, [], None
    for window in _numbers(windows):
        last = observe(_pair(_open(corpus), languages, window, workers, settings))
        lines[f"n = {window}"] = by_bins(last, bins)
        rows += [_row(f"n = {window}", last)]
    if control and last is not None:
        label = f"n = {_numbers(windows)[-1]}, shuffled"
        lines[label] = by_bins(last.shuffled(), bins)
        rows += [_row(label, last.shuffled())]
    print_table(["", "compounds", "|log a - log b|", "its ratio", "left out"], rows)
    _write(out, draw_compounds(lines, title=f"Compounds and their translations, {languages}"))


@cooccurrence.command()
def frequencies(
    corpus: Path = _CORPUS,
    languages: str = typer.Option(
        "", "--languages", "-l", help="Languages, with commas.", show_default="all"
    ),
    out: Path = typer.Option(Path("figure.svg"), "--out", "-o", help="The figure, an SVG file."),
) -> None:
    """Draw how often the tokens of each language occur, by rank (Figure 3)."""
    from isoglot.cli.asking import split
    from isoglot.corpus.cooccurrence.observation import frequencies as curve
    from isoglot.report.cooccurrence import draw_frequencies

    opened = _open(corpus)
    codes = split(languages) if languages else list(opened.languages)
    _write(out, draw_frequencies({code: curve(opened, code) for code in codes}))


def _open(corpus: Path) -> Corpus:
    from isoglot.corpus import Corpus

    return Corpus.open(corpus, verify="never")


def _stages() -> Stages:
    from rich.console import Console

    from isoglot.cli.progress import Stages

    return Stages(Console(stderr=True))


def _cores(workers: int | None) -> int:
    return workers or os.cpu_count() or 1


def _pair(
    corpus: Corpus, languages: str, window: int, workers: int | None, settings: list[str]
) -> Languages:
    """The two languages, their pairs counted."""
    from isoglot.cli.asking import changed
    from isoglot.corpus.cooccurrence import PairConfig
    from isoglot.corpus.cooccurrence.observation import Languages

    first, dash, second = languages.partition("-")
    if not dash:
        raise typer.BadParameter(f"{languages!r} is not two languages with a dash: de-en")
    config = PairConfig(**{**changed(settings, PairConfig), "window": window})
    with _stages() as stages:
        return Languages(corpus, (first, second), config, workers=_cores(workers), progress=stages)


def _source(
    phrase_table: Path | None,
    least: float,
    lexicon: Path | None,
    aligned: tuple[Path, Path, Path] | None,
) -> Callable[[Languages], Observed]:
    """Where compounds come from."""
    from isoglot.corpus.cooccurrence import compounds

    if sum(given is not None for given in (phrase_table, lexicon, aligned)) != 1:
        raise typer.BadParameter("give one of --phrase-table, --lexicon and --aligned")
    if lexicon is not None:
        entries = compounds.read_lexicon(lexicon)
        return lambda pair: pair.observe_lexicon(entries)
    if phrase_table is not None:
        found = compounds.from_phrase_table(phrase_table, least=least)
    else:
        assert aligned is not None
        found = compounds.from_alignments(*aligned)
    return lambda pair: pair.observe(found)


def _row(label: str, observed: Observed) -> list[str]:
    """All compounds of a window in one line."""
    from isoglot.corpus.cooccurrence.observation import by_bins

    (whole,) = by_bins(observed, 1)
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in observed.left_out.items())
    return [
        label,
        f"{whole.number:,}",
        f"{whole.difference:.3f} ± {whole.difference_half:.3f}",
        f"{whole.ratio:.3f} ± {whole.ratio_half:.3f}",
        left_out,
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
