"""`isoglot evaluate`: judge an encoder across languages."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli import app


@app.command()
def evaluate(
    model: Path = typer.Argument(..., help="A Hugging Face folder, or a run (runs/NAME)."),
    pairs: list[Path] = typer.Option(
        ..., "--pairs", "-p", help="Translations: TSV files named like en-de.tsv (or .xz, .gz)."
    ),
    out: Path | None = typer.Option(None, "--out", "-o", help="Results file. [results.json there]"),
    most: int = typer.Option(1000, help="Pairs of each file to use, from its top."),
) -> None:
    """Sentence retrieval by mean-pooled states: accuracy@1 in both directions, every layer."""
    from rich.console import Console

    from isoglot.evaluate import best_layer
    from isoglot.evaluate.run import evaluate_retrieval, model_folder

    terminal = Console(stderr=True)
    folder = model_folder(model)
    results = evaluate_retrieval(
        folder, pairs, most=most, progress=lambda name: terminal.print(f"retrieval {name}")
    )
    file = out or model / "results.json"
    results.write(file)
    layer, means = best_layer(results.scores)
    for language, value in means.items():
        print(f"{language:<8} {100 * value:5.1f}")
    average = sum(means.values()) / len(means)
    print(f"{'average':<8} {100 * average:5.1f}   (layer {layer}, the best on average; all in {file})")
