"""Real text for translation without translations, from the data folder to a small archive.

    python -m benchmarks.unmt.real_text DATA ARCHIVE.tar

For each pair of languages: text of either side, and tests. What comes from translations is cut
into halves, and one language gets the first, the other the second, so that no sentence of the one
has its translation in the other. No sentence of a test is in a text.

    en-de   Multi30k, the Tatoeba Challenge, the Bible, novels; tests: Multi30k 2016, WMT 2021 news
    ne-en   FLORES v1's dev and devtest, NTREX; English also WikiText-2, Multi30k; test: FLORES v1
"""

from __future__ import annotations

import json
import lzma
import random
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.alignment.sentences import essence, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST = {"novels": 60_000}
LEAST_WORDS, MOST_WORDS = 3, 60


def lines(file: Path) -> list[str]:
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n") for line in stream]


def halves(first: list[str], second: list[str]) -> tuple[list[str], list[str]]:
    """The first half of one side and the second half of the other, of translations in one order."""
    order = list(range(len(first)))
    random.Random(0).shuffle(order)
    middle = len(order) // 2
    return [first[n] for n in order[:middle]], [second[n] for n in order[middle:]]


def multi30k(data: Path, first: str, second: str) -> tuple[list[str], list[str]]:
    folder = data / "parallel/multi30k"
    return halves(*(lines(folder / f"train.{code}.txt.xz") for code in (first, second)))


def challenge(data: Path) -> tuple[list[str], list[str]]:
    rows = [
        line.split("\t") for line in lines(data / "parallel/tatoeba-challenge/deu-eng.test.tsv.xz")
    ]
    return halves([row[3] for row in rows], [row[2] for row in rows])


def bible(data: Path, first: str, second: str) -> tuple[list[str], list[str]]:
    sides = []
    for name in (first, second):
        rows = (line.split("\t") for line in lines(data / f"parallel/bible/{name}.tsv.xz"))
        sides.append({row[0]: row[1] for row in rows if len(row) == 2})
    shared = [verse for verse in sides[0] if verse in sides[1]]
    return halves(*([side[verse] for verse in shared] for side in sides))


def novels(data: Path, code: str) -> list[str]:
    found = []
    for line in lines(data / f"mono/eltec/{code}.jsonl.xz"):
        for paragraph in json.loads(line)["text"].splitlines():
            found += split(" ".join(paragraph.split()))
    random.Random(0).shuffle(found)
    return found[: MOST["novels"]]


def pair_test(files: tuple[Path, Path]) -> list[tuple[str, str]]:
    return list(zip(*map(lines, files), strict=True))


def german(data: Path) -> tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]:
    """Text and tests of en-de."""
    captions, everyday = multi30k(data, "en", "de"), challenge(data)
    verses = bible(data, "en-web", "de")
    text = {
        "en": captions[0] + everyday[0] + verses[0] + novels(data, "en"),
        "de": captions[1] + everyday[1] + verses[1] + novels(data, "de"),
    }
    folder = data / "parallel/multi30k"
    news = [line.split("\t") for line in lines(data / "parallel/wmt/newstest2021.en-de.tsv.xz")]
    tests = {
        "multi30k": pair_test(
            (folder / "test_2016_flickr.en.txt.xz", folder / "test_2016_flickr.de.txt.xz")
        ),
        "wmt21": [(row[0], row[1]) for row in news],
    }
    return text, tests


def nepali(data: Path) -> tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]:
    """Text and tests of ne-en."""
    flores, ntrex = data / "parallel/flores-v1", data / "parallel/ntrex"
    text: dict[str, list[str]] = {"ne": [], "en": []}
    for part in ("dev", "devtest"):
        # all of the Nepali, as there is so little; none of its English
        text["ne"] += lines(flores / f"wikipedia.{part}.ne-en.ne.txt.xz")
    text["ne"] += lines(ntrex / "ne.txt.xz")
    for part in ("dev", "devtest"):
        text["en"] += lines(flores / f"wikipedia.{part}.si-en.en.txt.xz")
    for part in ("valid", "test"):
        text["en"] += [
            sentence
            for paragraph in lines(data / f"mono/wikitext2/en.{part}.txt.xz")
            for sentence in split(" ".join(paragraph.replace(" @-@ ", "-").split()))
            if not sentence.startswith("=") and "<unk>" not in sentence
        ]
    text["en"] += multi30k(data, "en", "de")[0]
    files = tuple(flores / f"wikipedia.test.ne-en.{code}.txt.xz" for code in ("ne", "en"))
    return text, {"flores": pair_test((files[0], files[1]))}


PAIRS = {"en-de": german, "ne-en": nepali}


def kept(found: Iterable[str], forbidden: set[str]) -> Iterator[str]:
    """Sentences of a fitting length, each once, and none that a test has."""
    seen = set(forbidden)
    for text in found:
        sentence = " ".join(text.split())
        mark = essence(sentence)
        if mark not in seen and LEAST_WORDS <= len(sentence.split()) <= MOST_WORDS:
            seen.add(mark)
            yield sentence


def write(data: Path, folder: Path, pairs: Sequence[str] = tuple(PAIRS)) -> dict[str, int]:
    """Write text and tests of some pairs; gives the number of lines of each file."""
    counts = {}
    for name in pairs:
        text, tests = PAIRS[name](data)
        forbidden = {essence(side) for test in tests.values() for pair in test for side in pair}
        for code, found in text.items():
            counts[f"{name}/text/{code}.txt"] = _write(
                folder / name / f"text/{code}.txt", kept(found, forbidden)
            )
        for test, rows in tests.items():
            clean = ("\t".join(" ".join(side.split()) for side in row) for row in rows)
            counts[f"{name}/test/{test}.tsv"] = _write(folder / name / f"test/{test}.tsv", clean)
    return counts


def _write(file: Path, found: Iterable[str]) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    sentences = list(found)
    file.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    return len(sentences)


def main() -> None:
    data, archive = map(Path, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        for name, number in write(data, Path(scratch)).items():
            print(f"{number:8,}  {name}")
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(scratch, arcname=".")
    print(f"{archive}: {archive.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
