"""The inputs of the transplant study: two corpora, dictionaries and tests, in one small archive.

    python -m benchmarks.transplant_study.prepare WORK [--data DATA] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA), as the alignment study does and with its choice of text; writes

    WORK/corpus        text of ten languages, a vocabulary trained on all of it
    WORK/english       English text, more of it, with a vocabulary of its own
    WORK/dictionaries  a word and its translation a line: the training part of xling-eval
    WORK/test/tatoeba  pairs to find; none of their sentences is in either corpus
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
from pathlib import Path

from benchmarks.alignment.choose import choose_pairs, choose_text
from benchmarks.alignment.decontamination import EvaluationSentences
from benchmarks.alignment.languages import LANGUAGES, PIVOT
from benchmarks.alignment.sources import ENGLISH, evaluation_pairs
from benchmarks.alignment.text import pack, write_lines

from isoglot.cli.prepare import show_manifest
from isoglot.corpus.pipeline.run import prepare
from isoglot.recipe import load_prepare

NAMES = ("corpus", "english", "dictionaries", "test")
PREPARE = """\
sources:
  text:
    kind: text
    format: lines
    files: {{{files}}}
tokenizer: {{model: {model}, vocab_size: {words}, max_sentences: 300000}}
heldout_share: {heldout}
"""


def write_raw(data: Path, work: Path, *, tokens: int, english_tokens: int) -> dict[str, int]:
    """Write text and tests; gives how many test sentences were dropped, and where."""
    tests = evaluation_pairs(data)
    evaluation_sentences = EvaluationSentences(
        row for by_pair in tests.values() for rows in by_pair.values() for row in rows
    )
    for pair, rows in tests["tatoeba"].items():
        write_lines(work / f"test/tatoeba/{pair}.tsv", map("\t".join, rows))
    files = []
    for language in LANGUAGES:
        translated = []
        if language.code != PIVOT:
            # a side of its pairs is text where a language has too little of other kinds
            translated = choose_pairs(data, language, evaluation_sentences, 30_000)
        chosen = choose_text(data, language, evaluation_sentences, tokens, translated)
        files.append(work / f"raw/text/{language.code}.txt")
        write_lines(files[-1], ("\n".join([*document, ""]) for document in chosen))
    more = choose_text(data, ENGLISH, evaluation_sentences, english_tokens, [])
    files.append(work / "raw/english.txt")
    write_lines(files[-1], ("\n".join([*document, ""]) for document in more))
    evaluation_sentences.check(files)
    return {
        place: number for place, number in sorted(evaluation_sentences.dropped.items()) if number
    }


def write_dictionaries(data: Path, work: Path) -> None:
    """The largest training lexicon of each of the study's languages that has one."""
    for language in LANGUAGES:
        pair = f"{PIVOT}-{language.code}"
        file = data / f"eval/bli/xling-eval/{pair}/yacle.train.freq.5k.{pair}.tsv.xz"
        if file.is_file():
            with lzma.open(file, "rt", encoding="utf-8") as stream:
                write_lines(work / f"dictionaries/{pair}.txt", (line.strip() for line in stream))


def prepare_corpora(
    work: Path, *, words: int, english_words: int, heldout: float = 0.005, workers: int
) -> None:
    """Clean, train the two vocabularies, encode."""
    text = ", ".join(f"{of.code}: [raw/text/{of.code}.txt]" for of in LANGUAGES)
    settings = {
        "corpus": PREPARE.format(files=text, model="unigram", words=words, heldout=heldout),
        "english": PREPARE.format(
            files="en: [raw/english.txt]", model="bpe", words=english_words, heldout=heldout
        ),
    }
    for name, said in settings.items():
        file = work / f"{name}.yaml"
        file.write_text(said, encoding="utf-8")
        show_manifest(prepare(load_prepare(file), work / name, base=work, workers=workers))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the inputs of the transplant study.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--tokens", type=int, default=900_000, help="of each of ten languages")
    parser.add_argument("--english-tokens", type=int, default=3_500_000, help="of English alone")
    parser.add_argument("--words", type=int, default=32_000, help="of the common vocabulary")
    parser.add_argument("--english-words", type=int, default=16_000, help="of the English one")
    parser.add_argument("--heldout", type=float, default=0.005, help="share to validate on")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    dropped = write_raw(
        given.data, given.work, tokens=given.tokens, english_tokens=given.english_tokens
    )
    (given.work / "dropped.json").write_text(json.dumps(dropped, indent=1), encoding="utf-8")
    print(f"test sentences dropped: {sum(dropped.values()):,} (by place: dropped.json)")
    write_dictionaries(given.data, given.work)
    prepare_corpora(
        given.work,
        words=given.words,
        english_words=given.english_words,
        heldout=given.heldout,
        workers=given.workers,
    )
    if given.pack is not None:
        pack(given.work, given.pack, NAMES)


if __name__ == "__main__":
    main()
