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
) -> None:
    """Translate lines from standard input to standard output.

    BLEU goes to standard error and into a results file: sacrebleu's, with its signature, and what
    multi-bleu.perl computes on words as Moses cuts them.
    """
    from isoglot.cli.asking import changed
    from isoglot.cli.progress import without_bars_of_others
    from isoglot.evaluate.run import model_folder
    from isoglot.models.translator import Translator
    from isoglot.models.writing import WritingConfig

    without_bars_of_others()
    config = WritingConfig(**changed(settings, WritingConfig))
    folder = model_folder(model)
    translator = Translator.open(folder)
    for code in (source, target):
        translator.language(code)
    references = None if reference is None else _lines(reference)
    lines = [line.rstrip("\n") for line in sys.stdin]
    written = dict(translator.translate(lines, source, target, config))
    translations = [written[number] for number in range(len(lines))]
    print("\n".join(translations))
    if references is not None:
        _score(
            folder, f"{source}-{target}", translations, references, out or model / "results.json"
        )


def _lines(file: Path) -> list[str]:
    from isoglot.errors import IsoglotError

    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise IsoglotError(f"{file} cannot be read: {error}.") from error


def _score(
    folder: Path, languages: str, translations: list[str], references: list[str], file: Path
) -> None:
    """Say BLEU, and keep it beside the other scores of the model."""
    from isoglot.evaluate.bleu import as_scores, bleu
    from isoglot.evaluate.run import add_to_file, fingerprint
    from isoglot.results import Results

    found = bleu(translations, references, languages.split("-")[1])
    results = Results(
        model=str(folder), fingerprint=fingerprint(folder), scores=as_scores(found, languages)
    )
    add_to_file(results, file)
    print(
        f"{languages}: BLEU {found.sacrebleu:.2f} ({found.signature}), multi-bleu "
        f"{found.multi_bleu:.2f}, {found.empty} of {found.count} translations empty; {file}",
        file=sys.stderr,
    )
