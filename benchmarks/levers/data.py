"""The corpus of the lever and claim benchmarks: ten languages of uneven sizes, and translations.

    python -m benchmarks.levers.data WORK [--data DATA] [--scale 1.0] [--pairs 30000] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA) with the alignment study's choice of text; writes into WORK

    raw/text/xx.txt  raw/pairs/en-xx.tsv  prepare.yaml  dropped.json  corpus/

English has eleven times the text of Swahili, so that the exponent of language sampling (alpha)
matters as it does in real corpora. Sentences of every test that `benchmarks.claims` scores are
dropped from text and pairs, and counted in dropped.json.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alignment.choose import choose_pairs, choose_text
from benchmarks.alignment.decontamination import EvaluationSentences
from benchmarks.alignment.languages import LANGUAGES, OTHERS, PIVOT
from benchmarks.alignment.sentences import split
from benchmarks.alignment.sources import evaluation_pairs
from benchmarks.alignment.text import pack, write_lines
from benchmarks.claims.questions import TESTED, read_squad
from isoglot.cli.prepare import show_manifest
from isoglot.corpus.pipeline.run import prepare
from isoglot.recipe import load_prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS = {
    "en": 3_800_000,
    "de": 2_600_000,
    "fr": 2_600_000,
    "es": 2_600_000,
    "ru": 2_600_000,
    "zh": 1_900_000,
    "ar": 1_000_000,
    "tr": 700_000,
    "vi": 600_000,
    "sw": 350_000,
}
"""Tokens of text of each language, about."""
_NOTE_MARK = re.compile(r"\s*\[\d+\]")
"""Marks of notes in Wikipedia, which the corpus's text has not."""
_PREPARE = """\
sources:
  text:
    kind: text
    format: lines
    files: {{{text}}}
  pairs:
    kind: pairs
    format: tsv
    files: {{{pairs}}}
tokenizer: {{vocab_size: {vocabulary}, max_sentences: 300000}}
heldout_share: 0.01
"""


def labeled_sentences(data: Path) -> Iterator[tuple[str, ...]]:
    """The sentences of the tests of words, names, sentence pairs and questions."""
    tests = data / "eval"
    tagged = ("ud_pos", "ner/wikiann", "ner/masakhaner", "ner/uner")
    for file in (file for name in tagged for file in sorted((tests / name).glob("*.xz"))):
        words: list[str] = []
        for line in _lines(file):
            if line:
                words.append(_word(line))
            elif words:
                yield (" ".join(words),)
                words = []
    for file in sorted((tests / "word_align" / "xlm-align").glob("*/test.*.xz")):
        yield from ((line,) for line in _lines(file))
    for file in sorted((tests / "nli" / "xnli").glob("*.xz")):
        yield from ((cell,) for line in _lines(file) for cell in line.split("\t")[2:])
    for file in TESTED.values():
        for passage, question in read_squad(data, file):
            sentences = split(" ".join(_NOTE_MARK.sub("", passage).split()))
            yield from ((sentence,) for sentence in (*sentences, question["question"]))


def _word(line: str) -> str:
    """The word of a line of a tagged file: `form TAB tag`, `word tag` or `de:word TAB tag`."""
    word = line.replace(" ", "\t", 1).split("\t")[0]
    prefix, _, rest = word.partition(":")
    return rest if rest and len(prefix) == len("de") else word


def _lines(file: Path) -> Iterator[str]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield line.strip()


def write_raw(data: Path, work: Path, *, scale: float, most_pairs: int) -> dict[str, int]:
    """Write text and pairs; gives how many test sentences were dropped, and where."""
    tests = evaluation_pairs(data)
    evaluation_sentences = EvaluationSentences(
        row for by_pair in tests.values() for rows in by_pair.values() for row in rows
    )
    others = EvaluationSentences(labeled_sentences(data))  # type: ignore[arg-type]
    evaluation_sentences.known |= others.known
    files = []
    for language in LANGUAGES:
        translated = []
        if language.code != PIVOT:
            translated = choose_pairs(data, language, evaluation_sentences, most_pairs)
            files.append(work / "raw" / "pairs" / f"{PIVOT}-{language.code}.tsv")
            write_lines(files[-1], map("\t".join, translated))
        tokens = int(scale * TOKENS[language.code])
        chosen = choose_text(data, language, evaluation_sentences, tokens, translated)
        files.append(work / "raw" / "text" / f"{language.code}.txt")
        write_lines(files[-1], ("\n".join([*document, ""]) for document in chosen))
        print(f"{language.code}: {len(chosen):,} documents, {len(translated):,} pairs", flush=True)
    evaluation_sentences.check(files)
    return {place: n for place, n in sorted(evaluation_sentences.dropped.items()) if n}


def prepare_corpus(work: Path, *, vocabulary: int, workers: int) -> None:
    """WORK/raw to WORK/corpus, with a vocabulary trained on all of it."""
    text = (f"{one.code}: [raw/text/{one.code}.txt]" for one in LANGUAGES)
    names = [f"{PIVOT}-{one.code}" for one in OTHERS]
    pairs = (f"{name}: [raw/pairs/{name}.tsv]" for name in names)
    file = work / "prepare.yaml"
    told = {"text": ", ".join(text), "pairs": ", ".join(pairs), "vocabulary": vocabulary}
    file.write_text(_PREPARE.format(**told), encoding="utf-8")
    show_manifest(prepare(load_prepare(file), work / "corpus", base=work, workers=workers))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the corpus of the benchmarks.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--scale", type=float, default=1.0, help="times the tokens of text")
    parser.add_argument("--pairs", type=int, default=30_000, help="most pairs of a language")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz of the corpus")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    dropped = write_raw(given.data, given.work, scale=given.scale, most_pairs=given.pairs)
    (given.work / "dropped.json").write_text(json.dumps(dropped, indent=1), encoding="utf-8")
    print(f"test sentences dropped: {sum(dropped.values()):,} (by place: dropped.json)")
    prepare_corpus(given.work, vocabulary=given.vocabulary, workers=given.workers)
    if given.pack is not None:
        pack(given.work, given.pack, ("corpus",))


if __name__ == "__main__":
    main()
