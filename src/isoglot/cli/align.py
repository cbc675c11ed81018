"""`isoglot align`: the links between the words of translations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_file

if TYPE_CHECKING:
    from isoglot.alignment.config import AlignConfig

_EXAMPLE = r"""
Examples:

    isoglot align en-de.tsv --model bert-base-multilingual-cased > en-de.links

    isoglot align text.en text.de --model runs/mine --out en-de.links

    isoglot align en-zh.tsv -m runs/mine --pretokenize zh \
      --words-out en-zh.words -o en-zh.links

    isoglot align test.src-tgt -m runs/mine --gold test.gold --gold-from 1 \
      --aligner softmax
"""
_FILES = typer.Argument(
    ...,
    metavar="PAIRS",
    help="A file with a pair a line, a tab or ||| between the two sentences; or two files, a "
    "sentence a line. Plain or .gz, .bz2, .xz, .zst.",
)
_MODEL = typer.Option(
    ..., "--model", "-m", help="A Hugging Face folder, a run (runs/NAME) or a name on the hub."
)
_OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="File for the links, a line for each pair: 0-0 1-2.",
    show_default="standard output",
    callback=output_file,
)
_ALIGNER = typer.Option(
    "itermax",
    help="itermax (SimAlign: more links), argmax (SimAlign: fewer, surer links), softmax "
    "(awesome-align), transport or entropic (XLM-Align, both sentences encoded together).",
)
_LAYER = typer.Option(
    None,
    min=0,
    metavar="N",
    help="Layer whose states are compared (0: embeddings).",
    show_default="two thirds of the layers: 8 of 12",
)
_THRESHOLD = typer.Option(
    0.001, min=0, max=1, help="softmax: probability above which two tokens are linked."
)
_LANGUAGES = typer.Option(
    "",
    "--languages",
    "-l",
    metavar="A,B",
    help="Languages of the two sides, en,sw: for --pretokenize and models with language "
    "embeddings.",
    show_default="those in the files' names",
)
_PRETOKENIZE = typer.Option(
    "",
    metavar="CODE",
    help="Split text of this language (or of two: en,zh) into words by rules, not only at spaces: "
    "jieba for zh, a dictionary for th, Indic rules for hi and others, Moses for the rest.",
)
_WORDS = typer.Option(
    None,
    "--words-out",
    metavar="FILE",
    help="Write the words that the links count: first ||| second.",
    callback=output_file,
)
_GOLD = typer.Option(
    None,
    metavar="FILE",
    help="Gold links, a line for each pair: 0-0 sure, 1p2 possible. Prints the alignment error "
    "rate.",
)
_GOLD_FROM = typer.Option(0, min=0, max=1, help="Number of the first word in --gold.")
_ENCODE_TYPE = typer.Option(
    "float32", "--encode-type", help="Products of the encoder: float32, or bfloat16 (faster)."
)


@app.command(epilog=_EXAMPLE)
def align(
    files: list[Path] = _FILES,
    model: str = _MODEL,
    out: Path | None = _OUT,
    aligner: str = _ALIGNER,
    layer: int | None = _LAYER,
    threshold: float = _THRESHOLD,
    languages: str = _LANGUAGES,
    pretokenize: str = _PRETOKENIZE,
    words_out: Path | None = _WORDS,
    gold: Path | None = _GOLD,
    gold_from: int = _GOLD_FROM,
    encode_type: str = _ENCODE_TYPE,
    no_language_embeddings: bool = options.NO_LANGUAGE_EMBEDDINGS,
) -> None:
    """Link the words of sentences and their translations, in Pharaoh format.

    A pair's line has its links i-j, the i-th word of the first sentence and the j-th of the second,
    counted from 0. Words are the text between spaces, unless --pretokenize says otherwise. Lines
    keep their order; a blank line gives a blank line. A GPU is used if there is one.
    """
    from isoglot.cli.console import StageProgress, disable_progress_bars

    if len(files) > 2:
        raise typer.BadParameter("give one file of pairs, or two files.", param_hint="PAIRS")
    with_languages = not no_language_embeddings
    config = _config(aligner, encode_type, layer, threshold, with_languages=with_languages)
    codes = options.language_pair(languages)
    split = options.split_names(pretokenize) if pretokenize else []
    disable_progress_bars()
    from isoglot.alignment.align_files import align_files
    from isoglot.alignment.gold import GoldLinks

    links = None if gold is None else GoldLinks(gold, first_word=gold_from)
    folder = options.resolve_model(Path(model), language_embeddings=with_languages)
    with StageProgress() as progress:
        summary = align_files(
            files,
            folder,
            sys.stdout.buffer if out is None else out,
            config,
            languages=codes,
            pretokenize=split,
            words=words_out,
            gold=links,
            progress=progress,
            note=options.print_note,
        )
    said = f"{summary.num_pairs:,} pairs, {summary.num_links:,} links, layer {summary.layer}"
    speed = f"{summary.num_pairs / max(summary.seconds, 1e-9):,.0f} pairs/s"
    print(f"{said}, {speed}{f'; {out}' if out else ''}", file=sys.stderr)
    for score in [] if links is None else links.scores():
        interval = f"{100 * score.low:.1f} to {100 * score.high:.1f}"
        print(f"{score.metric} {100 * score.value:.1f} % ({interval})", file=sys.stderr)


def _config(
    aligner: str, encode_type: str, layer: int | None, threshold: float, *, with_languages: bool
) -> AlignConfig:
    from isoglot.alignment.config import AlignConfig
    from isoglot.evaluation.settings import Aligner, EncodeType

    checked = options.check_choices(
        aligner=(aligner, get_args(Aligner)), encode_type=(encode_type, get_args(EncodeType))
    )
    return AlignConfig(
        **checked,
        layer=layer,
        softmax_threshold=threshold,
        language_embeddings=with_languages,
    )
