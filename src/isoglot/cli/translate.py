"""`isoglot translate`: translate lines of text; with references, score them with BLEU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app, options
from isoglot.cli.outputs import output_file_or_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.evaluation.bleu import Bleu

_EXAMPLE = r"""
Examples:

    isoglot translate runs/unmt-mass --from de --to en < text.de > text.en

    isoglot translate runs/unmt-mass --from de --to en --set method=beam \
      < text.de

    isoglot translate runs/unmt-mass --from de --to en --reference test.en \
      < test.de > out.en

Settings: method (greedy, beam, sample), num_beams, length_penalty, temperature, max_length_a,
max_length_b.
"""


LINES_AT_ONCE = 4096
"""Lines that are translated, shortest with shortest, before they are written."""
_SEED = typer.Option(0, min=0, max=2**63 - 1, help="Random seed of method=sample.")
_OUT = typer.Option(
    None,
    "--out",
    "-o",
    help="Results file (.json), or a folder for results.json.",
    show_default="the run, or results/NAME",
    callback=output_file_or_folder,
)


@app.command(epilog=_EXAMPLE)
def translate(
    model: Path = typer.Argument(
        ..., help="A run of an encoder-decoder, or its Hugging Face folder."
    ),
    source: str = typer.Option(..., "--from", help="Language code of the input."),
    target: str = typer.Option(..., "--to", help="Language code of the output."),
    reference: Path | None = typer.Option(
        None, "--reference", "-r", help="Reference translations, one a line; prints BLEU."
    ),
    out: Path | None = _OUT,
    no_language_embeddings: bool = options.NO_LANGUAGE_EMBEDDINGS,
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting of generation: method=beam. May be repeated."
    ),
    seed: int = _SEED,
) -> None:
    """Translate lines from standard input to standard output.

    They are written 4,096 at a time, so that little is lost where the command is interrupted.

    With --reference, BLEU goes to standard error and into the results file, under the name of the
    reference file: sacrebleu's with its signature, and multi-bleu.perl's on Moses-tokenized text.
    """
    import torch

    from isoglot.cli.console import StageProgress, disable_progress_bars
    from isoglot.evaluation.bleu import as_scores, bleu, check_number, check_ready
    from isoglot.folders import model_folder
    from isoglot.languages import canonical
    from isoglot.model_results import add_scores, existing_results
    from isoglot.models.config import GenerationConfig
    from isoglot.models.translator import Translator

    disable_progress_bars()
    source, target = canonical(source), canonical(target)
    config = GenerationConfig(**options.parse_settings(settings, GenerationConfig))
    how = config.describe() + (f", seed {seed}" if config.method == "sample" else "")
    how += ", without language embeddings" if no_language_embeddings else ""
    folder = model_folder(model)
    translator = Translator.open(folder, with_languages=not no_language_embeddings)
    for code in (source, target):
        translator.language(code)
    if sys.stdin.isatty():
        options.print_note("Type one sentence a line, then Ctrl-D; or give a file: < text.txt.")
    lines = _read_lines(sys.stdin.buffer.read, "standard input")
    references = None if reference is None else _read_lines(reference.read_bytes, str(reference))
    if references is not None:
        check_number(lines, references)
        check_ready(target)
        file = options.results_file(out, model)
        # refuses results of another model before translating
        results = existing_results(folder, file)
    torch.manual_seed(seed)
    translations: list[str] = []
    with StageProgress() as progress:
        while group := lines[len(translations) : len(translations) + LINES_AT_ONCE]:
            written: dict[int, str] = {}
            for number, text in translator.translate(
                group, source, target, config, note=options.print_note
            ):
                written[number] = text
                progress("translate", len(translations) + len(written), len(lines))
            translated = [written[number] for number in range(len(group))]
            sys.stdout.flush()
            # written as bytes: UTF-8 in and out, whatever the locale
            sys.stdout.buffer.write("".join(f"{line}\n" for line in translated).encode())
            sys.stdout.buffer.flush()
            translations += translated
    if reference is not None and references is not None:
        found = bleu(translations, references, target)
        languages = f"{source}-{target}"
        add_scores(results, as_scores(found, languages, of=f"{reference.name}, {how}"), file)
        print(f"{languages}: {_described(found)}; {file}", file=sys.stderr)


def _described(found: Bleu) -> str:
    scores = f"BLEU {found.sacrebleu:.2f} ({found.signature}), multi-bleu {found.multi_bleu:.2f}"
    return f"{scores}, {found.num_empty} of {found.count} translations empty"


def _read_lines(read: Callable[[], bytes], name: str) -> list[str]:
    """The lines of a UTF-8 text, split at LF and CR LF only."""
    from isoglot.errors import IsoglotError

    try:
        lines = read().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except OSError as error:
        raise IsoglotError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise IsoglotError(
            f"{name} cannot be read: it is not UTF-8 ({error}). Convert it first, for example with "
            "iconv -f ISO-8859-1 -t UTF-8."
        ) from error
    return lines if lines[-1] else lines[:-1]
