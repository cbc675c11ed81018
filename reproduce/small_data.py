"""What `isoglot fetch NAMES --out FOLDER` leaves behind, generated: the data of `--small`.

    python -m reproduce.small_data opus:Europarl/en-fr wikipedia-dump:de xnli --out data
    python -m reproduce.small_data xlm-roberta-base --models

Files have the names and formats of the real ones; their content is the testbed's.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.languages import canonical, wikipedia_database
from reproduce.small_dumps import write_wikidata, write_wikipedia
from reproduce.small_models import write_model
from reproduce.small_tasks import TASKS, write
from reproduce.small_text import WORLD, said_in

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINES = 80
_TEST_LINES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("data"))
    parser.add_argument("--models", action="store_true", help="the names are those of models")
    given = parser.parse_args()
    for name in given.names:
        if given.models:
            write_model(name, Path(name))
        else:
            write_data(name, given.out, given.names)


def write_data(name: str, folder: Path, names: Sequence[str]) -> None:
    """Write the files of one name of the registry; `names` are all that are asked for."""
    kind, _, rest = name.partition(":")
    if kind in TASKS:
        TASKS[kind](folder)
    elif kind in _COLLECTIONS:
        _COLLECTIONS[kind](folder, rest)
    elif kind == "wikidata":
        dumps = [one.partition(":")[2] for one in names if one.startswith("wikipedia-dump:")]
        write_wikidata(folder / "wikidata/latest-all.json.bz2", [canonical(one) for one in dumps])
    else:
        message = f"{name}: small_data.py does not write it"
        raise SystemExit(message)


def _opus(folder: Path, name: str) -> None:
    corpus, pair = name.split("/")
    one, two = sorted(pair.split("-"))
    for code, lines in _sides(one, two, corpus):
        write(folder / f"opus/{corpus}/v1/{corpus}.{one}-{two}.{code}", lines)


def _iitb(folder: Path, _: str) -> None:
    for code, lines in _sides("en", "hi", "IITB"):
        write(folder / f"iitb/IITB.en-hi.{code}", lines)


def _flores(folder: Path, _: str) -> None:
    for code, lines in _sides("ne", "en", "floresv1", number=_TEST_LINES):
        write(folder / f"floresv1/wikipedia.test.ne-en.{code}", lines)


def _cc100(folder: Path, language: str) -> None:
    code = "zh-Hans" if language == "zh" else language
    _write_packed(folder / f"cc100/{code}.txt.xz", language, f"cc100/{language}")


def _newscrawl(folder: Path, name: str) -> None:
    code, year = name.split("/")
    _write_packed(folder / f"newscrawl/news.{year}.{code}.shuffled.deduped.gz", code, name)


def _wikipedia(folder: Path, language: str) -> None:
    database = wikipedia_database(language)
    file = folder / f"wikipedia-dump/{database}-latest-pages-articles-multistream.xml.bz2"
    write_wikipedia(file, canonical(language))


def _muse(folder: Path, pair: str) -> None:
    _, other = pair.split("-")
    words = [one for one, _ in WORLD.dictionary("en", "en")]
    lines = [f"{one} {said_in(other, one)}\n" for one in words if " " not in one]
    write(folder / f"muse/{pair}.txt", "".join(lines))


_COLLECTIONS = {
    "opus": _opus,
    "iitb": _iitb,
    "floresv1": _flores,
    "cc100": _cc100,
    "newscrawl": _newscrawl,
    "wikipedia-dump": _wikipedia,
    "muse-dictionary": _muse,
}


def print_test_set(pair: str, side: str) -> None:
    """Print one side of a test set, as `sacrebleu -t wmt16 -l PAIR --echo SIDE` does."""
    one, two = pair.split("-")
    lines = dict(_sides(one, two, "wmt16", number=_TEST_LINES))
    print(lines[one if side == "src" else two], end="")


def _sides(one: str, two: str, stream: str, *, number: int = _LINES) -> list[tuple[str, str]]:
    texts = [text for text, _ in WORLD.pairs("en", "en", number, stream=stream)]
    return [
        (code, "".join(f"{said_in(code, text)}\n" for text in dict.fromkeys(texts)))
        for code in (one, two)
    ]


def _write_packed(file: Path, language: str, stream: str) -> None:
    documents = WORLD.text("en", _LINES // 4, stream=stream)
    text = "\n".join("".join(f"{said_in(language, one)}\n" for one in lines) for lines in documents)
    pack = lzma.compress if file.suffix == ".xz" else gzip.compress
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pack(text.encode()))


if __name__ == "__main__":
    main()
