"""The tests of the claims, small enough to carry: sentences, words, tokens.

    python -m benchmarks.claims.data TESTS [--data DATA] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA); writes into TESTS

    ntrex/dev/en-xx.tsv  ntrex/test/en-xx.tsv   every other document of NTREX
    tatoeba/en-xx.tsv                           LASER's Tatoeba
    eval/word_align, eval/bli                   gold links, lexicons
    eval/ud_pos, eval/ner/wikiann               parts of speech, names
    eval/nli/xnli                               entailment
    eval/tydiqa                                 questions on a passage (`questions.py`)

The choice of a layer reads ntrex/dev, the odd gold links and the 500 words of a training lexicon;
scores read the rest. Of English UD-POS and WikiAnn the first 4,000 training sentences are kept, of
other languages the first 400 test sentences, and of UD-POS up to 200 more as a treebank of its own
named `dev`, by which arms are chosen. Names of languages that have no WikiAnn here are those of
MasakhaNER (Swahili, without dates) and UNER (Chinese). XNLI has no training pairs here: English
development pairs are trained on, 1,000 test pairs of Spanish and Swahili are scored.
"""

from __future__ import annotations

import argparse
import lzma
import os
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alignment.languages import LANGUAGES
from benchmarks.alignment.sources import evaluation_pairs
from benchmarks.alignment.text import pack, write_lines
from benchmarks.claims.questions import write_questions

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAIN_SENTENCES, TEST_SENTENCES, DEV_SENTENCES = 4000, 400, 200
TREEBANKS = {one.code: one.code for one in LANGUAGES} | {"sw": "swa"}
"""Language -> its name in the files of UD-POS."""
ALIGNED = ("de-en", "en-fr")
LEXICONS = ("en-de", "en-fr", "en-ru", "en-tr")


def _lines(file: Path) -> list[str]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n") for line in stream]


def write_sentences(data: Path, out: Path) -> None:
    """NTREX in two halves by document, and Tatoeba."""
    tests = evaluation_pairs(data)
    documents = _lines(data / "parallel" / "ntrex" / "document_ids.tsv.xz")
    number = {name: place for place, name in enumerate(dict.fromkeys(documents))}
    for pair, rows in tests["ntrex"].items():
        for part, half in enumerate(("dev", "test")):
            kept = [
                "\t".join(row)
                for row, document in zip(rows, documents, strict=True)
                if number[document] % 2 == part
            ]
            write_lines(out / "ntrex" / half / f"{pair}.tsv", kept)
    for pair, rows in tests["tatoeba"].items():
        write_lines(out / "tatoeba" / f"{pair}.tsv", map("\t".join, rows))


def write_words(data: Path, out: Path) -> None:
    """Gold links and lexicons."""
    place = Path("eval") / "word_align" / "xlm-align"
    for pair in ALIGNED:
        for file in sorted((data / place / pair).glob("*.xz")):
            write_lines(out / place / pair / file.stem, _lines(file))
    place = Path("eval") / "bli" / "xling-eval"
    for pair in LEXICONS:
        for part in ("test.freq.2k", "train.freq.500"):
            name = f"yacle.{part}.{pair}.tsv"
            write_lines(out / place / pair / name, _lines(data / place / pair / f"{name}.xz"))


def write_tokens(data: Path, out: Path) -> None:
    """Parts of speech: English to train on, all languages to test, more sentences to choose by."""
    folder, place = data / "eval" / "ud_pos", out / "eval" / "ud_pos"
    for code, name in TREEBANKS.items():
        (file,) = folder.glob(f"{name}_*.test.tsv.xz")
        sentences = list(_sentences(_lines(file)))
        tested, more = sentences[:TEST_SENTENCES], sentences[TEST_SENTENCES:][:DEV_SENTENCES]
        _write_sentences(place / file.stem.replace(f"{name}_", f"{code}_"), tested)
        if more:
            _write_sentences(place / f"{code}_dev.test.tsv", more)
    for part, number in (("train", TRAIN_SENTENCES), ("dev", TEST_SENTENCES)):
        (file,) = folder.glob(f"en_*.{part}.tsv.xz")
        _write_sentences(place / file.stem, list(_sentences(_lines(file)))[:number])


def write_names(data: Path, out: Path) -> None:
    """Names: English to train on; German, Swahili and Chinese to test."""
    ner, place = data / "eval" / "ner", out / "eval" / "ner" / "wikiann"
    for name, number in (
        ("en.train", TRAIN_SENTENCES),
        ("en.dev", TEST_SENTENCES),
        ("en.test", TEST_SENTENCES),
        ("de.test", TEST_SENTENCES),
    ):
        sentences = list(_sentences(_lines(ner / "wikiann" / f"{name}.tsv.xz")))
        _write_sentences(place / f"{name}.tsv", sentences[:number])
    for code, file in (
        ("sw", ner / "masakhaner" / "swa.test.conll.xz"),
        ("zh", ner / "uner" / "zh_gsd.test.tsv.xz"),
    ):
        found = list(_sentences(_lines(file)))[:TEST_SENTENCES]
        _write_sentences(place / f"{code}.test.tsv", [list(map(_named, one)) for one in found])


def _named(line: str) -> str:
    """A line of another data set as WikiAnn has it: a tab, and no dates."""
    word, tag = line.split("\t") if "\t" in line else line.rsplit(" ", 1)
    return f"{word}\t{'O' if tag.endswith('-DATE') else tag}"


def write_pairs(data: Path, out: Path) -> None:
    """Entailment: English development pairs to train on, test pairs of two other languages."""
    xnli, place = data / "eval" / "nli" / "xnli", out / "eval" / "nli" / "xnli"
    write_lines(place / "en.train.tsv", _lines(xnli / "en.dev.tsv.xz"))
    for code in ("en", "es", "sw"):
        write_lines(place / f"{code}.test.tsv", _lines(xnli / f"{code}.test.tsv.xz")[:1001])


def _sentences(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each sentence of a tagged file."""
    own: list[str] = []
    for line in (*lines, ""):
        if line:
            own.append(line)
        elif own:
            yield own
            own = []


def _write_sentences(file: Path, sentences: list[list[str]]) -> None:
    write_lines(file, (line for sentence in sentences for line in (*sentence, "")))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the tests of the claims.")
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    for write in (
        write_sentences,
        write_words,
        write_tokens,
        write_names,
        write_pairs,
        write_questions,
    ):
        write(given.data, given.out)
    if given.pack is not None:
        pack(given.out.parent, given.pack, (given.out.name,))


if __name__ == "__main__":
    main()
