"""`isoglot translate`: translate lines of text, and score them where references are given."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from isoglot.cli import app

_EXAMPLE = """
Examples:

    isoglot translate runs/unmt-mass --from de --to en < text.de > text.en

    isoglot translate runs/unmt-mass --from de --to en --set method=beam < text.de

    isoglot translate runs/unmt-mass --from de --to en --reference test.en < test.de > out.en

Settings: method (greedy, beam, sample), beams, length_penalty, temperature, longer_by, more.
"""


@app.command(epilog=_EXAMPLE)
def translate(
    model: Path = typer.Argument(..., help="A run with a decoder, or its Hugging Face folder."),
    source: str = typer.Option(..., "--from", help="Code of the language of the lines."),
    target: str = typer.Option(..., "--to", help="Code of the language to translate into."),
    reference: Path | None = typer.Option(
        None, "--reference", "-r", help="Translations to compare with, a line each: prints BLEU."
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Where to keep the scores.", show_default="MODEL/results.json"
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="Change how it writes: method=beam. May be given several times."
    ),
    seed: int = typer.Option(0, "--seed", help="Of method=sample: another one, other words."),
) -> None:
    """Translate lines from standard input to standard output.

    BLEU goes to standard error and into a results file, under the name of the reference file:
    sacrebleu's, with its signature, and what multi-bleu.perl computes on words as Moses cuts them.
    """
    import torch

    from isoglot.cli.asking import changed, results_file
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.evaluate.bleu import as_scores, bleu, check_number, check_ready
    from isoglot.evaluate.run import add_scores, model_folder, so_far
    from isoglot.models.translator import Translator
    from isoglot.models.writing import WritingConfig

    without_bars_of_others()
    config = WritingConfig(**changed(settings, WritingConfig))
    how = config.in_words() + (f", seed {seed}" if config.method == "sample" else "")
    folder = model_folder(model)
    translator = Translator.open(folder)
    for code in (source, target):
        translator.language(code)
    lines = _lines(sys.stdin.buffer.read(), "standard input")
    references = None if reference is None else _lines_of(reference)
    if references is not None:
        check_number(lines, references)
        check_ready(target)
        file = results_file(out, model)
        before = so_far(folder, file)  # refuses another model's before there is work to lose
    torch.manual_seed(seed)
    written = dict(translator.translate(lines, source, target, config, note=_note))
    translations = [written[number] for number in range(len(lines))]
    sys.stdout.flush()
    # as bytes: what is read is UTF-8, and so is what is written, whatever the terminal's locale
    sys.stdout.buffer.write("".join(f"{line}\n" for line in translations).encode())
    if reference is None or references is None:
        return
    found = bleu(translations, references, target)
    languages = f"{source}-{target}"
    scores = as_scores(found, languages, of=f"{reference.name}, {how}")
    add_scores(before, scores, file)
    print(
        f"{languages}: BLEU {found.sacrebleu:.2f} ({found.signature}), multi-bleu "
        f"{found.multi_bleu:.2f}, {found.empty} of {found.count} translations empty; {file}",
        file=sys.stderr,
    )


def _lines_of(file: Path) -> list[str]:
    from isoglot.errors import IsoglotError

    try:
        return _lines(file.read_bytes(), str(file))
    except OSError as error:
        raise IsoglotError(f"{file} cannot be read: {error}.") from error


def _lines(content: bytes, name: str) -> list[str]:
    """The lines of a text in UTF-8; only the usual ends of lines are ends."""
    from isoglot.errors import IsoglotError

    try:
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise IsoglotError(
            f"{name} cannot be read: it is not in UTF-8 ({error}). Convert it first."
        ) from error
    return lines if lines[-1] else lines[:-1]


def _note(said: str) -> None:
    print(f"note: {said}", file=sys.stderr)
