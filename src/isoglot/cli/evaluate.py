"""`isoglot evaluate`: judge an encoder across languages."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app


@app.command()
def evaluate(
    model: Path = typer.Argument(..., help="A Hugging Face folder, or a run (runs/NAME)."),
    pairs: list[Path] = typer.Option(
        ...,
        "--pairs",
        "-p",
        help="A file of translations, two columns with a tab between, named after its languages: "
        "en-de.tsv, or en-de.tsv.xz. May be given several times.",
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Results file.", show_default="MODEL/results.json"
    ),
    most: int = typer.Option(1000, min=1, help="Pairs of each file to use, from its top."),
    center: bool = typer.Option(
        False,
        "--center",
        help="Take each language's mean vector off first.",
    ),
) -> None:
    """Score an encoder across languages: is the nearest sentence the translation?

    A sentence's vector is the mean of a layer's states; nothing is trained.

    All layers are scored, in both directions; the one that is best on average is printed.
    """
    from rich.console import Console

    from isoglot.cli.progress import without_bars_of_others
    from isoglot.evaluate import best_layer
    from isoglot.evaluate.run import evaluate_retrieval, model_folder, scored_without

    without_bars_of_others()
    terminal = Console(stderr=True)
    folder = model_folder(model)
    note = scored_without(folder)
    if note is not None:
        terminal.print(f"[yellow]note[/]: {note}", highlight=False, soft_wrap=True)
    results = evaluate_retrieval(
        folder,
        pairs,
        most=most,
        center=center,
        progress=lambda name: terminal.print(f"retrieval {name}"),
    )
    file = out or model / "results.json"
    results.write(file)
    layer, means = best_layer(results.scores)
    for language, value in means.items():
        print(f"{language:<8} {100 * value:5.1f}")
    average = sum(means.values()) / len(means)
    print(
        f"{'average':<8} {100 * average:5.1f}   (layer {layer}, the best on average; all in {file})"
    )
