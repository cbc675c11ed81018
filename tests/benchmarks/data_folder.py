"""A hand-made folder of the shape of the study's data: a few lines for each language."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from benchmarks.alignment.languages import LANGUAGES, OTHERS

VERSES = {
    "en": "In the beginning was verse {}.",
    "de": "Am Anfang war der Vers {}.",
    "fr": "Au commencement était le verset {}.",
    "es": "En el principio era el verso {}.",
    "ru": "В начале был стих номер {}.",
    "tr": "Başlangıçta ayet {} vardı.",
    "ar": "في البدء كانت الآية {}.",
    "zh": "起初第{}节。",
    "sw": "Hapo mwanzo kulikuwa na aya {}.",
    "vi": "Ban đầu có câu thơ số {}.",
}
NUMBERS = ["one", *(f"{i}" for i in range(2, 31))]


def write_data(folder: Path) -> Path:
    """Write the folder; gives it back."""
    for language in LANGUAGES:
        code = language.code
        verses = [VERSES[code].format("一" if (code, n) == ("zh", "one") else n) for n in NUMBERS]
        name = "en-web" if code == "en" else code
        lines = [f"GEN.1.{i}\t{verse}" for i, verse in enumerate(verses)]
        if code == "en":
            lines.append("GEN.2.1\tOnly English has this verse.")
        _write(folder / f"parallel/bible/{name}.tsv.xz", lines)
        news = [VERSES[code].format(f"{n} 707") for n in NUMBERS]
        _write(folder / f"parallel/ntrex/{code}.txt.xz", news)
    for language in OTHERS:
        line = "Das ist ein Test." if language.code == "de" else f"{language.code} 999"
        _write(folder / f"eval/tatoeba/{language.tatoeba}-eng.tsv.xz", [f"{line}\tIt is a test."])
    challenge = folder / "parallel/tatoeba-challenge"
    _write(
        challenge / "eng-zho.dev.tsv.xz",
        [
            "eng\tcmn_Hans\tI know.\t我知道。",
            "eng\tyue_Hans\tWho knows?\t边个知。",
            "eng\tcmn_Hant\tHe came.\t他來了。",
        ],
    )
    _write(challenge / "deu-eng.test.tsv.xz", ["deu\teng\tdas ist ein test\tTesting, testing."])
    _write(folder / "parallel/mafand/en-swa.train.tsv.xz", ["The news is good.\tHabari ni njema."])
    document = {"id": "a", "text": "It rained all night in the town. Nobody went out.\nHead"}
    _write(folder / "mono/mdn/en.jsonl.xz", [json.dumps(document)])
    _write(folder / "mono/lingua_sentences/en.txt.xz", ["A sentence of a list."])
    _write(
        folder / "mono/lingua_sentences/de.txt.xz", ["Das ist ein Test!", "Es regnet sehr viel."]
    )
    return folder


def _write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(file, "wt", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)
