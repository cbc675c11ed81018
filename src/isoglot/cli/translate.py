"""`isoglot translate`: translate lines of text; with references, score them with BLEU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli import app, options

if TYPE_CHECKING:
    from collections.abc import Callable

_EXAMPLE = """
Examples:

    isoglot translate runs/unmt-mass --from de --to en < text.de > text.en

    isoglot translate runs/unmt-mass --from de --to en --set method=beam < text.de

    isoglot translate runs/unmt-mass --from de --to en --reference test.en < test.de > out.en

Settings: method (greedy, beam, sample), num_beams, length_penalty, temperature, max_length_a,
max_length_b.
"""


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
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Results file.", show_default="MODEL/results.json"
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change a setting of generation: method=beam. May be repeated."
    ),
    seed: int = typer.Option(0, "--seed", help="Random seed of method=sample."),
) -> None:
    """Translate lines from standard input to standard output.

    With --reference, BLEU goes to standard error and into the results file, under the name of the
    reference file: sacrebleu's with its signature, and multi-bleu.perl's on Moses-tokenized text.
    """
    import torch

    from isoglot.cli.console import disable_progress_bars
    from isoglot.evaluation.bleu import as_scores, bleu, check_number, check_ready
    from isoglot.model_results import add_scores, existing_results, model_folder
    from isoglot.models.config import GenerationConfig
    from isoglot.models.translator import Translator

    disable_progress_bars()
    config = GenerationConfig(**options.parse_settings(settings, GenerationConfig))
    how = config.describe() + (f", seed {seed}" if config.method == "sample" else "")
    folder = model_folder(model)
    translator = Translator.open(folder)
    for code in (source, target):
        translator.language(code)
    lines = _read_lines(sys.stdin.buffer.read, "standard input")
    references = None if reference is None else _read_lines(reference.read_bytes, str(reference))
    if references is not None:
        check_number(lines, references)
        check_ready(target)
        file = options.results_file(out, model)
        # refuses results of another model before translating
        results = existing_results(folder, file)
    torch.manual_seed(seed)
    written = dict(translator.translate(lines, source, target, config, note=options.print_note))
    translations = [written[number] for number in range(len(lines))]
    sys.stdout.flush()
    # written as bytes: UTF-8 in and out, whatever the locale
    sys.stdout.buffer.write("".join(f"{line}\n" for line in translations).encode())
    if reference is not None and references is not None:
        found = bleu(translations, references, target)
        languages = f"{source}-{target}"
        add_scores(results, as_scores(found, languages, of=f"{reference.name}, {how}"), file)
        scores = (
            f"BLEU {found.sacrebleu:.2f} ({found.signature}), multi-bleu {found.multi_bleu:.2f}"
        )
        empty = f"{found.num_empty} of {found.count} translations empty"
        print(f"{languages}: {scores}, {empty}; {file}", file=sys.stderr)


def _read_lines(read: Callable[[], bytes], name: str) -> list[str]:
    """The lines of a UTF-8 text, split at LF and CR LF only."""
    from isoglot.errors import IsoglotError

    try:
        lines = read().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except OSError as error:
        raise IsoglotError(f"{name} cannot be read: {error}.") from error
    except UnicodeDecodeError as error:
        raise IsoglotError(
            f"{name} cannot be read: it is not in UTF-8 ({error}). Convert it first."
        ) from error
    return lines if lines[-1] else lines[:-1]
