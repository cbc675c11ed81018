"""The folder of a claims study from generated sentences: corpora, knowledge, tests, in seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alignment.text import write_lines
from benchmarks.claims import knowledge
from benchmarks.claims.english import prepare_english
from benchmarks.claims.translation import FOLDER

from isoglot.corpus.pipeline.run import prepare
from isoglot.recipe import load_prepare
from tests.benchmarks.test_claims_knowledge import TEMPLATES, world, write_pack

if TYPE_CHECKING:
    import pytest

NOUNS = {
    "en": ("house", "river", "friend", "garden", "letter", "winter", "bread", "road"),
    "fr": ("maison", "rivière", "ami", "jardin", "lettre", "hiver", "pain", "route"),
    "de": ("Haus", "Fluss", "Freund", "Garten", "Brief", "Winter", "Brot", "Weg"),
}
VERBS = {
    "en": ("sees", "finds", "paints", "knows", "loves"),
    "fr": ("voit", "trouve", "peint", "connaît", "aime"),
    "de": ("sieht", "findet", "malt", "kennt", "liebt"),
}
TAGS = ("NOUN", "VERB", "NOUN", "PUNCT")
NAMES = ("B-PER", "O", "B-LOC", "O")
LABELS = ("neutral", "contradiction", "entailment")
PREPARE = """\
sources:
  text: {{kind: text, format: lines, files: {{{text}}}}}
{pairs}tokenizer: {{vocab_size: 400}}
heldout_share: 0.1
"""


def sentences(number: int, seed: int) -> list[dict[str, list[str]]]:
    """The same sentences in every language, as words."""
    rng = random.Random(seed)
    found = []
    for _ in range(number):
        one, other = rng.randrange(8), rng.randrange(8)
        verb, number_told = rng.randrange(5), str(rng.randrange(100))
        told = {
            code: [nouns[one], VERBS[code][verb], nouns[other], number_told]
            for code, nouns in NOUNS.items()
        }
        found.append(told)
    return found


def write_work(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WORK with everything that the arms of `claims.yaml` read; two languages, or three."""
    _write_corpora(work)
    prepare_english(work, vocabulary=310, heldout=0.1)
    entries = zip(NOUNS["en"][:3], NOUNS["fr"][:3], strict=True)
    write_lines(work / "dictionaries" / "en-fr.txt", map("\t".join, entries))
    write_pack(work / "data")
    monkeypatch.setattr(knowledge, "MIN_CANDIDATES", 3)
    monkeypatch.setattr(knowledge, "HELDOUT_SHARE", 0.2)
    knowledge.write_knowledge(work / "data", work)
    write_tests(work / "tests")


def _write_corpora(work: Path) -> None:
    made = world()
    for code in ("en", "fr", "de"):
        # every language has other sentences, as no text is a translation
        lines = [" ".join(one[code]) for one in sentences(700, len(code) + ord(code[0]))]
        if code in TEMPLATES:
            lines += [made.tell(fact, code) for fact in made.facts]
        write_lines(work / "raw" / "text" / f"{code}.txt", lines)
    pairs = (" ".join(one["en"]) + "\t" + " ".join(one["fr"]) for one in sentences(900, 1))
    write_lines(work / "raw" / "pairs" / "en-fr.tsv", pairs)
    told = "  pairs: {kind: pairs, format: tsv, files: {en-fr: [raw/pairs/en-fr.tsv]}}\n"
    for folder, codes, of_pairs in (
        (work / "corpus", ("en", "fr"), told),
        (work / FOLDER / "corpus", ("en", "de"), ""),
    ):
        text = ", ".join(f"{code}: [raw/text/{code}.txt]" for code in codes)
        file = work / f"prepare-{codes[1]}.yaml"
        file.write_text(PREPARE.format(text=text, pairs=of_pairs), encoding="utf-8")
        prepare(load_prepare(file), folder, base=work, workers=1)
    rows = (" ".join(one["en"]) + "\t" + " ".join(one["de"]) for one in sentences(6, 5))
    write_lines(work / FOLDER / "tests" / "multi30k.tsv", rows)


def write_tests(tests: Path) -> None:
    """The files that `benchmarks.claims.data` writes, of English and French."""
    for seed, name in enumerate(("ntrex/dev", "ntrex/test", "tatoeba")):
        rows = (" ".join(one["en"]) + "\t" + " ".join(one["fr"]) for one in sentences(8, 10 + seed))
        write_lines(tests / name / "en-fr.tsv", rows)
    links, made = tests / "eval" / "word_align" / "xlm-align" / "en-fr", sentences(8, 20)
    for code in ("en", "fr"):
        write_lines(links / f"test.{code}", (" ".join(one[code]) for one in made))
    gold = [f"{n + 1:04} {k} {k}" for n in range(len(made)) for k in range(1, 5)]
    write_lines(links / "align.txt", gold)
    write_lines(links / "alignv2.txt", (f"{link} S" for link in gold))
    for part in ("test.freq.2k", "train.freq.500"):
        entries = map("\t".join, zip(NOUNS["en"], NOUNS["fr"], strict=True))
        write_lines(tests / "eval/bli/xling-eval/en-fr" / f"yacle.{part}.en-fr.tsv", entries)
    for name, codes, tags in (
        ("ud_pos/{}_made.{}.tsv", ("en", "fr"), TAGS),
        ("ner/wikiann/{}.{}.tsv", ("en", "fr"), NAMES),
    ):
        for code, part in ((code, part) for code in codes for part in ("train", "dev", "test")):
            lines = [
                line
                for one in sentences(16, 30)
                for line in (*map("\t".join, zip(one[code], tags, strict=True)), "")
            ]
            write_lines(tests / "eval" / name.format(code, part), lines)
    _write_entailment(tests / "eval" / "nli" / "xnli")
    _write_questions(tests / "eval" / "tydiqa")


def _write_entailment(folder: Path) -> None:
    for code, part in (("en", "train"), ("en", "test"), ("fr", "test")):
        rows = [
            f"{n}\tmade\t{LABELS[n % 3]}\t{' '.join(one[code])}\t{' '.join(one[code][:3])}"
            for n, one in enumerate(sentences(12, 40))
        ]
        heading = f"pairID\tgenre\tlabel\tsentence1_{code}\tsentence2_{code}"
        write_lines(folder / f"{code}.{part}.tsv", [heading, *rows])


def _write_questions(folder: Path) -> None:
    for code, part in (("en", "train"), ("fr", "test")):
        paragraphs = []
        for number, one in enumerate(sentences(16, 50)):
            subject, verb, told, _ = one[code]
            answer = {"text": told, "answer_start": len(f"{subject} {verb} ")}
            asked = {"id": str(number), "question": f"{subject} {verb}", "answers": [answer]}
            paragraphs.append({"context": " ".join(one[code]), "qas": [asked]})
        said = {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
        write_lines(folder / f"{code}.{part}.json", [json.dumps(said, ensure_ascii=False)])
