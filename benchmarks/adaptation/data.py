"""Raw files of the study: text of known languages and of two new ones, pairs, and test sentences.

    python -m benchmarks.adaptation.data WORK [--data DATA] [--tokens 1900000] [--pairs 30000]
                                             [--languages en de fr es]

Reads DATA (or $ISOGLOT_DATA); writes into WORK

    raw/encoder/xx.txt     four fifths of the documents of the known languages, for the encoder
    raw/text/xx.txt        the other fifth, and all text of two new languages, for adapting it
    raw/pairs/en-xx.tsv    translations
    test/TEST/en-xx.tsv    test sentences, which are in no other file
    prepare.yaml           the corpus of the encoder
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.alignment.choose import choose_pairs, choose_text
from benchmarks.alignment.decontamination import EvaluationSentences
from benchmarks.alignment.languages import LANGUAGES, PIVOT, Language, latin
from benchmarks.alignment.sources import evaluation_pairs
from benchmarks.alignment.text import write_lines

NEW_LANGUAGES = (latin("ha", "hau", 3.7), latin("ro", "ron", 4.0))
"""Languages that the encoder has not seen: Hausa and Romanian."""
SHARE_OF_ADAPTATION = 5
"""Every fifth document of a known language is kept from the encoder."""
_PREPARE = """\
sources:
  text:
    kind: text
    format: lines
    files: {{{files}}}
tokenizer: {{vocab_size: {vocabulary}, max_sentences: 300000}}
heldout_share: 0.003
"""


def write_raw(
    data: Path, work: Path, known: list[Language], *, tokens: int, most_pairs: int
) -> None:
    """Write text, pairs and tests of the known and the new languages."""
    found = evaluation_pairs(data, (*known, *NEW_LANGUAGES))
    for name, by_pair in found.items():
        for pair, rows in by_pair.items():
            write_lines(work / "test" / name / f"{pair}.tsv", ("\t".join(row) for row in rows))
    evaluation_sentences = EvaluationSentences(
        row for by_pair in found.values() for rows in by_pair.values() for row in rows
    )
    for language in (*known, *NEW_LANGUAGES):
        translated = []
        if language.code != PIVOT:
            translated = choose_pairs(data, language, evaluation_sentences, most_pairs)
            file = work / "raw" / "pairs" / f"{PIVOT}-{language.code}.tsv"
            write_lines(file, ("\t".join(pair) for pair in translated))
        chosen = choose_text(data, language, evaluation_sentences, tokens, translated)
        parts = {"text": chosen}
        if language in known:
            parts = {
                "encoder": [one for n, one in enumerate(chosen) if n % SHARE_OF_ADAPTATION],
                "text": chosen[::SHARE_OF_ADAPTATION],
            }
        for name, documents in parts.items():
            file = work / "raw" / name / f"{language.code}.txt"
            write_lines(file, ("\n".join([*document, ""]) for document in documents))
        print(f"{language.code}: {len(chosen):,} documents, {len(translated):,} pairs", flush=True)


def write_prepare_file(work: Path, known: list[Language], *, vocabulary: int) -> None:
    """The prepare file of the encoder's corpus."""
    files = ", ".join(f"{one.code}: [raw/encoder/{one.code}.txt]" for one in known)
    text = _PREPARE.format(files=files, vocabulary=vocabulary)
    (work / "prepare.yaml").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the raw files of the study.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--tokens", type=int, default=1_900_000, help="of text, a language")
    parser.add_argument("--pairs", type=int, default=30_000, help="most pairs of a language")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens of the encoder's")
    codes = [one.code for one in LANGUAGES]
    parser.add_argument("--languages", nargs="+", choices=codes, default=codes, help="known ones")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    known = [one for one in LANGUAGES if one.code in given.languages]
    write_raw(given.data, given.work, known, tokens=given.tokens, most_pairs=given.pairs)
    write_prepare_file(given.work, known, vocabulary=given.vocabulary)


if __name__ == "__main__":
    main()
