"""`isoglot mine`: translations among the lines of two files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import get_args

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_file, output_folder

_EXAMPLE = r"""
Examples:

    isoglot mine wiki.en.txt wiki.sw.txt --model runs/mine --out pairs.tsv

    isoglot mine a.txt.xz b.txt.xz --model sentence-transformers/LaBSE \
      --threshold 1.06 -o pairs.tsv

    isoglot mine a.txt b.txt --model runs/mine --strategy intersection \
      --vectors work -o pairs.tsv
"""
_MODEL = typer.Option(
    ...,
    "--model",
    "-m",
    help="A Hugging Face or sentence-transformers folder, a run (runs/NAME) or a name on the hub.",
)
_OUT = typer.Option(
    ..., "--out", "-o", help="TSV file: score, source, target; best first.", callback=output_file
)
_LANGUAGES = typer.Option(
    "",
    "--languages",
    "-l",
    metavar="A,B",
    help="Languages of the two files, en,sw: for models with language embeddings or "
    "pretokenization.",
)
_STRATEGY = typer.Option(
    "max",
    help="Who proposes pairs: max (both sides, each sentence once), intersection (only pairs that "
    "both propose), forward (each line of the first file) or backward.",
)
_THRESHOLD = typer.Option(1.0, help="Least ratio margin of a pair; 1.04 to 1.06 are usual.")
_TOP = typer.Option(None, min=1, metavar="N", help="Most pairs, the best first.")
_NEIGHBORS = typer.Option(
    4, "--neighbors", "-k", min=1, max=1000, help="Neighbors in the mean of a ratio margin."
)
_INDEX = typer.Option(
    "auto", help="Search: exact, faiss, or auto (exact up to a million sentences a file)."
)
_PROBES = typer.Option(32, min=1, help="FAISS: clusters that are searched for a sentence.")
_CLUSTERS = typer.Option(None, min=1, metavar="N", help="FAISS: clusters.", show_default="4 √N")
_TYPE = typer.Option("float32", "--vector-type", help="Vectors on disk: float32 or float16.")
_ENCODE_TYPE = typer.Option(
    "float32", "--encode-type", help="Products of the encoder: float32, or bfloat16 on a GPU."
)
_VECTORS = typer.Option(
    None,
    help="Folder of the sentence vectors, kept for other thresholds and strategies.",
    show_default="OUT.vectors, removed in the end",
    callback=output_folder,
)


@app.command(epilog=_EXAMPLE)
def mine(
    first: Path = typer.Argument(..., help="Sentences, one a line; or .gz, .xz, ..."),
    second: Path = typer.Argument(..., help="Sentences in another language."),
    model: str = _MODEL,
    out: Path = _OUT,
    languages: str = _LANGUAGES,
    strategy: str = _STRATEGY,
    threshold: float = _THRESHOLD,
    top: int | None = _TOP,
    neighbors: int = _NEIGHBORS,
    index: str = _INDEX,
    num_probes: int = _PROBES,
    num_clusters: int | None = _CLUSTERS,
    vector_type: str = _TYPE,
    encode_type: str = _ENCODE_TYPE,
    vectors: Path | None = _VECTORS,
    no_language_embeddings: bool = options.NO_LANGUAGE_EMBEDDINGS,
) -> None:
    """Find translations among the lines of two files, scored by ratio margin.

    The margin is the cosine of two sentence vectors over the mean cosine of their nearest neighbors
    (Artetxe and Schwenk 2019): 1 means as near as those. Repeated and blank lines are left out.
    A GPU is used if there is one. After an interruption the same command continues.
    """
    from isoglot.cli.console import StageProgress, disable_progress_bars
    from isoglot.evaluation.settings import EncodeType
    from isoglot.mining.config import Index, MineConfig, VectorType
    from isoglot.mining.mine import mine as mine_pairs
    from isoglot.progress import duration

    checked = options.check_choices(
        strategy=(strategy, ("max", "intersection", "forward", "backward")),
        index=(index, get_args(Index)),
        vector_type=(vector_type, get_args(VectorType)),
        encode_type=(encode_type, get_args(EncodeType)),
    )
    config = MineConfig(
        **checked,
        num_neighbors=neighbors,
        threshold=threshold,
        top=top,
        num_probes=num_probes,
        num_clusters=num_clusters,
        language_embeddings=not no_language_embeddings,
    )
    codes = options.language_pair(languages)
    disable_progress_bars()
    began = time.monotonic()
    with StageProgress() as progress:
        pairs = mine_pairs(
            first,
            second,
            model,
            out,
            languages=codes,
            config=config,
            vectors=vectors,
            progress=progress,
            note=options.print_note,
        )
    worst = f", margins {pairs[0].score:.3f} to {pairs[-1].score:.3f}" if pairs else ""
    print(f"{len(pairs):,} pairs in {out}{worst}; {duration(time.monotonic() - began)}")
