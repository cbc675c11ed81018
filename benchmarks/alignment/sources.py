"""The data folder as the study reads it: documents of one language, pairs with English, tests.

mono/SOURCE/xx.jsonl.xz     documents, paragraphs on lines     mono/SOURCE/xx.txt.xz   sentences
parallel/bible/xx.tsv.xz    verse id, text                     parallel/tatoeba-challenge/
parallel/mafand/en-swa.*    pairs                              parallel/ntrex, eval/tatoeba: tests
"""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING

from benchmarks.alignment.languages import LANGUAGES, PIVOT, Language
from benchmarks.alignment.sentences import is_sentence, split, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Document = list[str]
Pair = tuple[str, str]

RUNNING = ("eltec", "rusdracor", "openiti", "mdn", "k8s", "opensource-guide", "react-docs")
LISTS = ("lingua_sentences", "ud_raw", "voa")
SENTENCES_A_DOCUMENT = 100
"""Novels and lists are cut into documents of this many sentences, to be drawn from evenly."""

ENGLISH_BIBLE = "en-web"
ENGLISH = LANGUAGES[0]


def documents(data: Path, language: Language) -> dict[str, list[Document]]:
    """Source -> its documents of a language, as sentences."""
    found = {}
    for source in RUNNING:
        file = data / "mono" / source / f"{language.code}.jsonl.xz"
        if file.is_file():
            texts = (json.loads(line)["text"] for line in _lines(file))
            found[source] = [cut for text in texts for cut in _cut(_sentences(text, language))]
    for source in LISTS:
        file = data / "mono" / source / f"{language.code}.txt.xz"
        if file.is_file():
            tidied = (tidy(line, language) for line in _lines(file))
            found[source] = _cut([text for text in tidied if is_sentence(text, language)])
    return found


def pairs(data: Path, language: Language) -> dict[str, list[Pair]]:
    """Source -> its pairs, English first."""
    tatoeba = data / "parallel" / "tatoeba-challenge"
    found = {
        "bible": _bible_pairs(data, language),
        "tatoeba-challenge": [
            pair for file in sorted(tatoeba.glob("*.xz")) for pair in _challenge(file, language)
        ],
        "mafand": [
            (tidy(first, ENGLISH), tidy(second, language))
            for file in sorted((data / "parallel" / "mafand").glob(f"en-{language.challenge}.*.xz"))
            for first, _, second in (line.partition("\t") for line in _lines(file))
        ],
    }
    # news sites leave addresses behind
    plain = {
        source: dict.fromkeys(pair for pair in of if "://" not in "".join(pair))
        for source, of in found.items()
    }
    return {source: list(of) for source, of in plain.items() if of}


def verses(data: Path, language: Language) -> list[Document]:
    """The Bible of a language as documents."""
    name = ENGLISH_BIBLE if language.code == PIVOT else language.code
    return _cut(list(_bible(data, name, language).values()))


def evaluation_pairs(
    data: Path, languages: Sequence[Language] = LANGUAGES
) -> dict[str, dict[str, list[Pair]]]:
    """Test -> `en-xx` -> its pairs, English first: NTREX and LASER's Tatoeba, where they are."""
    ntrex = {
        language.code: [" ".join(line.split()) for line in _lines(_ntrex(data, language.code))]
        for language in languages
        if _ntrex(data, language.code).is_file()
    }
    found: dict[str, dict[str, list[Pair]]] = {"ntrex": {}, "tatoeba": {}}
    for language in languages:
        name = f"{PIVOT}-{language.code}"
        tatoeba = data / "eval" / "tatoeba" / f"{language.tatoeba}-eng.tsv.xz"
        if language.code != PIVOT and language.code in ntrex:
            found["ntrex"][name] = list(zip(ntrex[PIVOT], ntrex[language.code], strict=True))
        if language.code != PIVOT and tatoeba.is_file():
            rows = (line.partition("\t") for line in _lines(tatoeba))
            found["tatoeba"][name] = [(english, foreign) for foreign, _, english in rows]
    return found


def _ntrex(data: Path, code: str) -> Path:
    return data / "parallel" / "ntrex" / f"{code}.txt.xz"


def _bible(data: Path, name: str, language: Language) -> dict[str, str]:
    """Verse id -> text."""
    lines = _lines(data / "parallel" / "bible" / f"{name}.tsv.xz")
    entries = (line.partition("\t") for line in lines)
    return {verse: tidy(text, language) for verse, _, text in entries}


def _bible_pairs(data: Path, language: Language) -> list[Pair]:
    """Verses that both Bibles have."""
    english = _bible(data, ENGLISH_BIBLE, ENGLISH)
    other = _bible(data, language.code, language)
    return [(text, other[verse]) for verse, text in english.items() if verse in other]


def _challenge(file: Path, language: Language) -> Iterator[Pair]:
    """The pairs of one file of the Tatoeba Challenge that are English and this language."""
    if set(file.name.split(".")[0].split("-")) != {"eng", language.challenge}:
        return
    for line in _lines(file):
        one, two, first, second = line.split("\t")
        texts = {one: first, two: second}
        other = next((texts[name] for name in language.variants if name in texts), None)
        if other is not None:
            yield tidy(texts["eng"], ENGLISH), tidy(other, language)


def _sentences(text: str, language: Language) -> Document:
    found = (split(tidy(paragraph, language)) for paragraph in text.split("\n"))
    return [piece for pieces in found for piece in pieces if is_sentence(piece, language)]


def _cut(sentences: Document) -> list[Document]:
    size = SENTENCES_A_DOCUMENT
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def _lines(file: Path) -> Iterator[str]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            if stripped := line.strip("\n\r"):
                yield stripped
