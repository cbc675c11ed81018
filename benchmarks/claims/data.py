"""The tests of the claims, small enough to carry: sentences, words, tokens.

    python -m benchmarks.claims.data TESTS [--data DATA] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA); writes into TESTS

    ntrex/dev/en-xx.tsv  ntrex/test/en-xx.tsv   every other document of NTREX
    tatoeba/en-xx.tsv                           LASER's Tatoeba
    eval/word_align, eval/bli, eval/ud_pos      gold links, lexicons, parts of speech

The choice of a layer reads ntrex/dev, the odd gold links and the 500 words of a training lexicon;
scores read the rest. Of English UD-POS the first 4,000 training sentences are kept, of other
languages the first 400 test sentences.
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

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAIN_SENTENCES, TEST_SENTENCES = 4000, 400
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
    """Parts of speech: English to train on, all languages to test."""
    folder = data / "eval" / "ud_pos"
    for code, name in TREEBANKS.items():
        (file,) = folder.glob(f"{name}_*.test.tsv.xz")
        kept = _first_sentences(_lines(file), TEST_SENTENCES)
        write_lines(out / "eval" / "ud_pos" / file.stem.replace(f"{name}_", f"{code}_"), kept)
    for part in ("train", "dev"):
        (file,) = folder.glob(f"en_*.{part}.tsv.xz")
        number = TRAIN_SENTENCES if part == "train" else TEST_SENTENCES
        write_lines(out / "eval" / "ud_pos" / file.stem, _first_sentences(_lines(file), number))


def _first_sentences(lines: list[str], number: int) -> Iterator[str]:
    for line in lines:
        if number == 0:
            return
        number -= not line
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the tests of the claims.")
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    for write in (write_sentences, write_words, write_tokens):
        write(given.data, given.out)
    if given.pack is not None:
        pack(given.out.parent, given.pack, (given.out.name,))


if __name__ == "__main__":
    main()
