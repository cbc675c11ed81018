"""`isoglot explore`: a local web page to try models on."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_folder

_EXAMPLE = r"""
Examples:

    isoglot explore demo/adapted --pairs demo/new/pairs/en-sw.tsv

    isoglot explore before=xlm-roberta-base after=adapted \
      --pairs test/en-sw.tsv --text sw=news.txt

    isoglot explore runs/mine --corpus corpora/mine --recipe xlm \
      --results runs/mine/results.json
"""
_MODELS = typer.Argument(
    ...,
    metavar="MODEL",
    help="Hugging Face folders, runs (runs/NAME) or names on the hub; NAME=FOLDER sets the name on "
    "the page. Two are shown side by side.",
)
_CORPUS = typer.Option(None, "--corpus", "-c", help="A prepared corpus, to search and to draw.")
_PAIRS = typer.Option(
    [],
    "--pairs",
    "-p",
    help="TSV file of translations: en-de.tsv, or en-de=FILE. May be repeated.",
)
_DICTIONARY = typer.Option(
    [],
    "--dictionary",
    "-d",
    help="File of words and translations, named after its languages: en-de.txt. May be repeated.",
)
_TEXT = typer.Option(
    [],
    "--text",
    metavar="FILE",
    help="Text file, one sentence a line, named after its language (sw.txt) or given as "
    "sw=news.txt. May be repeated.",
)
_RECIPE = typer.Option(None, "--recipe", help="Recipe whose batches are shown: a name or a file.")
_RESULTS = typer.Option(
    [],
    "--results",
    help="Results file of isoglot evaluate, or its --save-predictions file, to look at errors. May "
    "be repeated.",
)
_DATA = typer.Option(
    [],
    "--data",
    help="Folder of the tasks' files, for the texts of examples in results files. May be repeated.",
)
_HOST = typer.Option("127.0.0.1", "--host", help="Address to listen on; others see the page then.")
_PORT = typer.Option(7860, "--port", min=0, max=65535, help="Port; 0: any free one.")
_NO_BROWSER = typer.Option(False, "--no-browser", help="Do not open the page in the browser.")
_DEVICE = typer.Option(
    None, "--device", help="cpu, cuda or cuda:1.", show_default="the GPU if there is one"
)
_LIMIT = typer.Option(
    10_000, "--limit", min=1, metavar="N", help="Most sentences of each language, or pairs."
)
_VECTORS = typer.Option(
    None,
    "--vectors",
    help="Folder in which sentence vectors are kept for the next start.",
    show_default="in memory only",
    callback=output_folder,
)


@app.command(epilog=_EXAMPLE)
def explore(
    models: list[str] = _MODELS,
    corpus: str | None = _CORPUS,
    pairs: list[Path] = _PAIRS,
    dictionary: list[Path] = _DICTIONARY,
    text: list[str] = _TEXT,
    recipe: str | None = _RECIPE,
    results: list[Path] = _RESULTS,
    data: list[Path] = _DATA,
    vectors: Path | None = _VECTORS,
    host: str = _HOST,
    port: int = _PORT,
    no_browser: bool = _NO_BROWSER,
    device: str | None = _DEVICE,
    limit: int = _LIMIT,
) -> None:
    """Try models on a page in the browser: type a sentence, see what is near to it.

    The page is served on this machine only, until Ctrl-C. Nothing is sent anywhere: no telemetry,
    no fonts or scripts from the network. With another --host, everybody who reaches this machine
    can use the page; the command says what they will see. Needs Gradio, which the package's extra
    `explore` installs.
    """
    from isoglot.cli.console import StageProgress, disable_progress_bars
    from isoglot.explore.app import require_gradio
    from isoglot.explore.server import serve, sharing_note
    from isoglot.explore.session import open_session

    require_gradio()
    disable_progress_bars()
    session = open_session(
        models,
        corpus=corpus,
        pairs=pairs,
        dictionaries=dictionary,
        text=text,
        results=results,
        data=data,
        recipe=recipe,
        vectors=vectors,
        device=device,
        limit=limit,
        note=options.print_note,
        progress=StageProgress,
    )
    shared = sharing_note(session, host)
    if shared is not None:
        options.print_note(shared)

    def ready(address: str) -> None:
        print(f"{address} (Ctrl-C stops)", flush=True)

    serve(session, host=host, port=port, browser=not no_browser, ready=ready)
    print("stopped", file=sys.stderr)
