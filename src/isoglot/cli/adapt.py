"""`isoglot adapt`: an encoder, text and translations in; a better encoder and the proof out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.cli import app
from isoglot.cli.outputs import output_folder

if TYPE_CHECKING:
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.adaptation.run import AdaptOutcome

_INTERRUPTED = 130
"""The exit code of a command that was stopped from the keyboard."""

_EXAMPLE = r"""
Examples:

    isoglot adapt xlm-roberta-base --out adapted \
      --text 'sw=raw/sw/*.txt.gz' --text en=raw/en.txt \
      --pairs en-sw=raw/en-sw.tsv

    isoglot adapt models/mine --pairs ro-en=a.ro,a.en --hours 2 --dry-run

    isoglot adapt models/mine --text en=en.txt --text fr=fr.txt \
      --knowledge tables

    isoglot adapt models/mine --text ha=hf:owner/dataset \
      --pairs en-ha=opus:Tatoeba

    isoglot adapt adapt.yaml --out adapted

Data are files, 'patterns' in quotes, folders, URLs, datasets of the hub
(hf:OWNER/NAME) and names that isoglot fetch knows. Formats are found by
looking: plain lines, JSON lines, Parquet; for pairs also two columns with a
tab between, TMX, XLIFF, and two files that are parallel line by line. Files
may be compressed (.gz, .bz2, .xz, .zst).

The same command continues after an interruption. It uses OUT/plan as it is,
so that recipe.yaml and prepare.yaml in it can be edited (docs/adapt.md).
"""


@app.command(epilog=_EXAMPLE, context_settings={"allow_extra_args": True})
def adapt(
    context: typer.Context,
    encoder: str = typer.Argument(
        ...,
        help="The encoder: a Hugging Face folder, a run (runs/NAME) or a name on the hub; or a "
        "YAML file with the settings.",
    ),
    text: list[str] = typer.Option(
        [],
        "--text",
        "-t",
        metavar="LANGUAGE=NAME",
        help="Running text of a language: sw=FILE, with commas between several. May be repeated. "
        "Give text of languages that the encoder knows, too (en=FILE), so that it keeps them.",
    ),
    pairs: list[str] = typer.Option(
        [],
        "--pairs",
        "-p",
        metavar="A-B=NAME",
        help="Translations: en-sw=FILE, or en-sw=a.en,a.sw. May be repeated.",
    ),
    out: Path = typer.Option(
        Path("adapted"),
        "--out",
        "-o",
        help="Folder for everything: the plan, the models (OUT/model, OUT/sentence-transformers) "
        "and the page (OUT/report.html).",
        callback=output_folder,
    ),
    hours: float | None = typer.Option(
        None,
        help="Time for everything, from the command to the page.",
        show_default="passes over the data by its size",
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Look at the data, write and print the plan, and stop there."
    ),
    test: list[str] = typer.Option(
        [],
        "--test",
        help="File of a test set: its lines are kept out of training. May be repeated.",
    ),
    alignments: list[str] = typer.Option(
        [],
        "--alignments",
        help="Folder with gold word alignments to score before and after. May be repeated.",
    ),
    dictionary: list[str] = typer.Option(
        [],
        "--dictionary",
        "-d",
        help="File with a word and its translation on each line: new words of the vocabulary "
        "start from their translations. May be repeated.",
    ),
    knowledge: str | None = typer.Option(
        None,
        "--knowledge",
        "-k",
        metavar="FOLDER",
        help="Tables of entities, mentions and facts (isoglot knowledge extract or graph): names "
        "and facts are trained to find descriptions in another language.",
    ),
    vocabulary: str = typer.Option(
        "auto",
        help="Words to add to the vocabulary: auto (where words are split too finely), keep, or a "
        "number.",
    ),
    heldout: int = typer.Option(
        1000,
        help="Lines of each language, and pairs, that are held out for the scores before and "
        "after; at most a tenth of the data.",
    ),
    early_stopping: bool = typer.Option(
        False,
        "--early-stopping",
        help="Stop when scores on development data no longer improve, and export the best step.",
    ),
    license: str | None = typer.Option(  # noqa: A002 (the name of the option)
        None, help="License of the new model for its card: apache-2.0, cc-by-4.0, ..."
    ),
    workers: int | None = typer.Option(
        None, help="Processes that read and prepare data.", show_default="one for each core"
    ),
    seed: int = typer.Option(0, help="Random seed of the held-out lines and of training."),
    push_to_hub: str | None = typer.Option(
        None, metavar="OWNER/NAME", help="Upload the model with its card to the Hugging Face hub."
    ),
) -> None:
    """Make an encoder better in your languages, and show it.

    From text and translations: looks at the encoder, the data and the machine, plans (objectives,
    vocabulary, learning rate, steps; each with its reason), trains, and scores before and after on
    lines and pairs that were held out first. Needs no other decision than files and languages.
    """
    from rich.console import Console

    from isoglot.adaptation.request import parse_named, unquoted
    from isoglot.adaptation.run import adapt as run
    from isoglot.cli.console import disable_progress_bars

    texts, translations = parse_named(text, "--text"), parse_named(pairs, "--pairs")
    if context.args:
        from isoglot.errors import CorpusError

        raise CorpusError(unquoted(context.args, {**translations, **texts}))
    disable_progress_bars()
    config = _request(
        encoder,
        {
            "text": texts,
            "pairs": translations,
            "dictionaries": tuple(dictionary),
            "knowledge": knowledge,
            "tests": tuple(test),
            "alignments": tuple(alignments),
            "hours": hours,
            "vocabulary": int(vocabulary) if vocabulary.isdecimal() else vocabulary,
            "heldout": heldout,
            "early_stopping": early_stopping,
            "license": license,
            "workers": workers,
            "seed": seed,
        },
        {name for name in context.params if _was_typed(context, name)},
    )
    console = Console(stderr=True)
    try:
        outcome = run(config, out, dry_run=dry_run, push_to_hub=push_to_hub, console=console)
    except KeyboardInterrupt:
        console.print("stopped: finished work is kept; the same command continues.")
        raise typer.Exit(_INTERRUPTED) from None
    finish(outcome)


def finish(outcome: AdaptOutcome) -> None:
    """Print the table before and after, what got worse, and where the files are.

    After an interruption the command ends with another exit code.
    """
    from isoglot.adaptation.page import HEADINGS, change_and_interval, terminal_rows
    from isoglot.cli.console import print_table

    if outcome.stopped:
        print(f"{outcome.stopped}; the same command continues.")
        raise typer.Exit(_INTERRUPTED)
    if outcome.scores is None:
        print("dry run: the same command without --dry-run carries the plan out.")
        return
    if outcome.was_done:
        print(f"{outcome.out} is finished: nothing was left to do.\n")
    print_table(HEADINGS, terminal_rows(outcome.scores))
    print()
    for one in outcome.scores.worse:
        print(f"worse: {one.metric}, {one.where}: {change_and_interval(one)}")
    for choice in outcome.scores.choices:
        print(f"{choice.what}: {choice.choice}; chosen on {choice.data}")
    print(f"model: {outcome.model}")
    if outcome.sentence_model is not None:
        print(f"sentence-transformers: {outcome.sentence_model}")
    print(f"page: {outcome.report}")
    for address in outcome.pushed:
        print(f"pushed: {address}")


_OPTIONS = {"dictionaries": "dictionary", "tests": "test"}
"""Settings whose option has another name."""


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _request(encoder: str, given: dict[str, Any], typed: set[str]) -> AdaptConfig:
    """The settings: of a file, changed by the options that were typed; or of options alone."""
    from dataclasses import replace

    from isoglot.adaptation.request import AdaptConfig, load_request
    from isoglot.errors import RecipeError

    if given["vocabulary"] not in ("auto", "keep") and not isinstance(given["vocabulary"], int):
        raise RecipeError(
            f"--vocabulary {given['vocabulary']}: write auto, keep, or the number of words to add."
        )
    if Path(encoder).suffix not in (".yaml", ".yml"):
        return AdaptConfig(encoder=encoder, **given)
    loaded = load_request(Path(encoder))
    changed = {name: value for name, value in given.items() if _OPTIONS.get(name, name) in typed}
    return replace(loaded, **changed)
