"""The study's corpus and tests from the data folder: text, pairs, tests, then `isoglot prepare`.

    python -m benchmarks.alignment.text WORK [--data DATA] [--tokens 1900000] [--pairs 30000]

Reads DATA (or $ISOGLOT_DATA); writes into WORK

    raw/text/xx.txt  raw/pairs/en-xx.tsv  prepare.yaml  dropped.json  corpus/
    test/ntrex/en-xx.tsv  test/tatoeba/en-xx.tsv

and with --pack FILE one .tar.xz of what training needs (corpus and tests, no raw text).
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alignment.choose import choose_pairs, choose_text
from benchmarks.alignment.decontamination import EvaluationSentences
from benchmarks.alignment.languages import LANGUAGES, OTHERS, PIVOT
from benchmarks.alignment.sources import evaluation_pairs

from isoglot.cli.prepare import show_manifest
from isoglot.corpus.pipeline.run import prepare
from isoglot.recipe import load_prepare

if TYPE_CHECKING:
    from collections.abc import Iterable

PREPARE = """\
sources:
  text:
    kind: text
    format: lines
    files: {{{text}}}
  pairs:
    kind: pairs
    format: tsv
    files: {{{pairs}}}
tokenizer: {{vocab_size: {words}, max_sentences: 300000}}
heldout_share: 0.003
"""


def write_raw(data: Path, work: Path, *, tokens: int, most_pairs: int) -> dict[str, int]:
    """Write text, pairs and tests; gives how many test sentences were dropped, and where."""
    found = evaluation_pairs(data)
    for name, by_pair in found.items():
        for pair, rows in by_pair.items():
            write_lines(work / "test" / name / f"{pair}.tsv", ("\t".join(row) for row in rows))
    evaluation_sentences = EvaluationSentences(
        row for by_pair in found.values() for rows in by_pair.values() for row in rows
    )
    raw = work / "raw"
    for language in LANGUAGES:
        translated = []
        if language.code != PIVOT:
            translated = choose_pairs(data, language, evaluation_sentences, most_pairs)
            file = raw / "pairs" / f"{PIVOT}-{language.code}.tsv"
            write_lines(file, ("\t".join(pair) for pair in translated))
        chosen = choose_text(data, language, evaluation_sentences, tokens, translated)
        # a blank line after each document
        write_lines(raw / "text" / f"{language.code}.txt", ("\n".join([*of, ""]) for of in chosen))
        print(f"{language.code}: {len(chosen):,} documents, {len(translated):,} pairs", flush=True)
    evaluation_sentences.check(sorted([*raw.glob("text/*.txt"), *raw.glob("pairs/*.tsv")]))
    return {
        place: number for place, number in sorted(evaluation_sentences.dropped.items()) if number
    }


def prepare_corpus(work: Path, *, words: int, workers: int) -> None:
    """WORK/raw to WORK/corpus, with a vocabulary of this many words trained on all of it."""
    text = (f"{language.code}: [raw/text/{language.code}.txt]" for language in LANGUAGES)
    names = [f"{PIVOT}-{language.code}" for language in OTHERS]
    pairs = (f"{name}: [raw/pairs/{name}.tsv]" for name in names)
    settings = PREPARE.format(text=", ".join(text), pairs=", ".join(pairs), words=words)
    file = work / "prepare.yaml"
    file.write_text(settings, encoding="utf-8")
    show_manifest(prepare(load_prepare(file), work / "corpus", base=work, workers=workers))


def pack(work: Path, archive: Path, names: tuple[str, ...] = ("corpus", "test")) -> None:
    """One archive of what training needs, its paths relative to WORK."""
    # ids are four bytes each: tell xz so, it saves an eighth
    four_bytes = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}
    with (
        lzma.open(archive, "wb", filters=[four_bytes]) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        for name in names:
            tar.add(work / name, arcname=name)
    print(f"{archive}: {archive.stat().st_size / 2**20:.1f} MiB")


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Write a file of lines, and its folder where there is none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the study's corpus and tests.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--tokens", type=int, default=1_900_000, help="of text, a language")
    parser.add_argument("--pairs", type=int, default=30_000, help="most pairs a language")
    parser.add_argument("--words", type=int, default=32_000, help="size of the vocabulary")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    dropped = write_raw(given.data, given.work, tokens=given.tokens, most_pairs=given.pairs)
    (given.work / "dropped.json").write_text(json.dumps(dropped, indent=1), encoding="utf-8")
    print(f"test sentences dropped: {sum(dropped.values()):,} (by place: dropped.json)")
    prepare_corpus(given.work, words=given.words, workers=given.workers)
    if given.pack is not None:
        pack(given.work, given.pack)


if __name__ == "__main__":
    main()
