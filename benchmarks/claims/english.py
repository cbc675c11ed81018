"""What a monolingual model needs: an English corpus with its own vocabulary, and dictionaries.

    python -m benchmarks.claims.english WORK [--data DATA] [--vocabulary 16000] [--pack FILE]

Reads WORK/raw/text/en.txt (`benchmarks.levers.data`) and the lexicons of DATA (or $ISOGLOT_DATA);
writes into WORK

    english-corpus/          the English text of WORK/corpus, in a BPE vocabulary of its own
    dictionaries/en-xx.txt   a word and its translation a line

Lines are held out by a hash of their text, so the lines that WORK/corpus holds out are held out
here, too. Dictionaries are the 5,000 training pairs of xling-eval, less every pair of which a word
occurs in a lexicon that the cells are scored on, or in the 500 pairs that their layer is chosen on.
"""

from __future__ import annotations

import argparse
import lzma
import os
from pathlib import Path

from benchmarks.alignment.text import pack, write_lines
from benchmarks.claims.data import LEXICONS
from isoglot.cli.prepare import show_manifest
from isoglot.corpus.pipeline.run import prepare
from isoglot.recipe import load_prepare

CORPUS, DICTIONARIES = "english-corpus", "dictionaries"
TRAINED = "train.freq.5k"
SCORED = ("test.freq.2k", "train.freq.500")
_PREPARE = """\
sources:
  text:
    kind: text
    format: lines
    files: {{en: [raw/text/en.txt]}}
tokenizer: {{model: bpe, vocab_size: {vocabulary}, max_sentences: 300000}}
heldout_share: {heldout}
"""


def prepare_english(
    work: Path, *, vocabulary: int, heldout: float = 0.01, workers: int = 1
) -> None:
    """WORK/raw/text/en.txt to WORK/english-corpus; `heldout` is to be that of WORK/corpus."""
    file = work / "prepare-english.yaml"
    file.write_text(_PREPARE.format(vocabulary=vocabulary, heldout=heldout), encoding="utf-8")
    show_manifest(prepare(load_prepare(file), work / CORPUS, base=work, workers=workers))


def write_dictionaries(data: Path, work: Path) -> dict[str, int]:
    """The training lexicons without the words of the others; pair of languages -> its entries."""
    written = {}
    for pair in LEXICONS:
        folder = data / "eval" / "bli" / "xling-eval" / pair
        scored = [row for part in SCORED for row in _rows(folder / f"yacle.{part}.{pair}.tsv.xz")]
        sides = [{word.lower() for word in column} for column in zip(*scored, strict=True)]
        kept = [
            row
            for row in _rows(folder / f"yacle.{TRAINED}.{pair}.tsv.xz")
            if not any(word.lower() in side for word, side in zip(row, sides, strict=True))
        ]
        write_lines(work / DICTIONARIES / f"{pair}.txt", map("\t".join, kept))
        written[pair] = len(kept)
    return written


def _rows(file: Path) -> list[tuple[str, str]]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        rows = [line.strip().split("\t") for line in stream]
    return [(word, translation) for word, translation in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the English corpus and dictionaries.")
    parser.add_argument("work", type=Path, help="the folder of benchmarks.levers.data")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--vocabulary", type=int, default=16_000, help="tokens")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pack", type=Path, help=f"also write this .tar.xz, {CORPUS}.tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    for pair, number in write_dictionaries(given.data, given.work).items():
        print(f"{pair}: {number:,} entries of a dictionary", flush=True)
    prepare_english(given.work, vocabulary=given.vocabulary, workers=given.workers)
    if given.pack is not None:
        pack(given.work, given.pack, (CORPUS, DICTIONARIES))


if __name__ == "__main__":
    main()
