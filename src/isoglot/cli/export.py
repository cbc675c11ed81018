"""`isoglot export`: a run's checkpoint, or any encoder, as a folder of another library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from isoglot.cli import app
from isoglot.cli.console import StageProgress, disable_progress_bars, print_table
from isoglot.cli.outputs import output_folder
from isoglot.errors import IsoglotError

if TYPE_CHECKING:
    from isoglot.exporting.export import ExportedModel, Format
    from isoglot.exporting.pooling import Layers, Pooling
    from isoglot.exporting.run_checkpoint import WhichCheckpoint

_EXAMPLE = r"""
Examples:

    isoglot export runs/mine

    isoglot export runs/mine --checkpoint best \
      --format transformers,sentence-transformers

    isoglot export models/xlm-r --format sentence-transformers \
      --pairs dev/en-sw.tsv --to models/st

    isoglot export runs/mine --format onnx --to models/onnx
"""


@app.command(epilog=_EXAMPLE)
def export(
    source: str = typer.Argument(
        ..., help="A run (runs/NAME), also a stopped one, a Hugging Face folder or a hub name."
    ),
    to: Path | None = typer.Option(
        None,
        "--to",
        "-o",
        help="Folder to write; of several formats, each is a folder in it.",
        show_default="RUN/exports/step-N",
        callback=output_folder,
    ),
    formats: str = typer.Option(
        "transformers",
        "--format",
        "-f",
        help="transformers, sentence-transformers, onnx, or several with commas between.",
    ),
    checkpoint: str = typer.Option(
        "last", help="Checkpoint of a run: last (the newest undamaged one), best, or a step."
    ),
    pairs: list[Path] = typer.Option(
        [],
        "--pairs",
        "-p",
        help="TSV file of held-out translations (en-sw.tsv) to choose the pooling on. May be "
        "repeated.",
        show_default="the held-out pairs of the run's corpus",
    ),
    pooling: str = typer.Option(
        "auto", help="Sentence vectors: mean, cls (the first token), or auto: chosen on pairs."
    ),
    layers: str = typer.Option(
        "all", help="Layers that poolings are compared on: all, or only the last."
    ),
    corpus: Path | None = typer.Option(
        None,
        help="The corpus of the run, where it was moved or an earlier version wrote the run.",
        show_default="as the run records it",
    ),
) -> None:
    """Export a run, stopped or finished, or any encoder.

    A run that is being trained is exported from its newest checkpoint. RUN/model, which the run
    writes at its end, is not touched. The pooling of sentence vectors is chosen on held-out pairs;
    the card says what was tried.
    """
    from isoglot.exporting import ExportOptions, export_model

    disable_progress_bars()
    names = [name.strip() for name in formats.split(",") if name.strip()]
    _one_of("--pooling", pooling, ("auto", "mean", "cls"))
    _one_of("--layers", layers, ("all", "last"))
    options = ExportOptions(
        formats=tuple(cast("Format", name) for name in dict.fromkeys(names)),
        pairs=tuple(pairs),
        pooling=None if pooling == "auto" else cast("Pooling", pooling),
        layers=cast("Layers", layers),
    )
    with StageProgress() as progress:
        done = export_model(
            source,
            to,
            options,
            checkpoint=_checkpoint(checkpoint),
            corpus=corpus,
            progress=progress,
        )
    _print(done)


def _checkpoint(text: str) -> WhichCheckpoint:
    if text in ("last", "best"):
        return cast("WhichCheckpoint", text)
    if text.isascii() and text.isdigit():
        return int(text)
    raise IsoglotError(f"--checkpoint {text}: write last, best or the number of a step.")


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise IsoglotError(f"{option} {value}: write {', '.join(allowed[:-1])} or {allowed[-1]}.")


def _print(done: ExportedModel) -> None:
    """Print the table of poolings, notes, and the folders."""
    choice = done.pooling
    if choice is not None and choice.tried:
        print("retrieval on held-out pairs, accuracy@1 in percent, both directions:\n")
        print_table(["layer", "mean", "first token"], choice.rows())
        print()
    if choice is not None:
        print(f"sentence vector: {choice.describe()}. {choice.reason}")
    if done.onnx_difference is not None:
        print(f"onnxruntime and torch differ by {done.onnx_difference:.1g} at most")
    for note in done.notes:
        print(f"note: {note}")
    if done.step is not None:
        print(f"checkpoint of step {done.step:,}")
    for name, folder in done.folders.items():
        print(f"{name}: {folder}")
