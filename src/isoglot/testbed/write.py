"""Writes a world as the raw files that a user would have: text, translations, dictionaries.

text/<language>.txt             one sentence a line, a blank line between documents
pairs/<pivot>-<language>.tsv    two columns: training translations
test/<pivot>-<language>.tsv     the same for evaluation: no sentence twice, none in training
dictionaries/<pivot>-<language>.txt   a word and its translation, separated by a tab
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.testbed.languages import LANGUAGES
from isoglot.testbed.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    languages: Sequence[str] = LANGUAGES,
    sentences: int = 20000,
    pairs: int = 10000,
    test_pairs: int = 1000,
    pivot: str = "en",
    concepts: int | None = None,
    entities: int | None = None,
    uneven: bool = False,
    shares: tuple[str, ...] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Writes the files into the folder, made if missing.

    Args:
        folder: Where the files go.
        seed: Of the world.
        languages: Which of the world's languages get files.
        sentences: Lines of text per language; the last document is cut to fit.
        pairs: Training translations per language other than the pivot.
        test_pairs: Test translations per language other than the pivot.
        pivot: The language of the first column.
        concepts: Size of the lexicon, see `World`.
        entities: Number of entities, see `World`.
        uneven: How often words come, see `World`.
        shares: Which meanings a language's text may have, see `World.text`; tests have those
            that nobody's has.
        progress: Called after each file with its name, its number and the number of files.
    """
    world = World(seed, concepts=concepts, entities=entities, uneven=uneven)
    root = Path(folder)
    others = [language for language in languages if language != pivot]
    files: list[tuple[str, Iterable[str]]] = [
        (f"text/{language}.txt", _documents(world, language, sentences, shares))
        for language in languages
    ]
    seen = frozenset(first for first, _ in world.pairs(pivot, pivot, pairs))
    for other in others:
        name = f"{pivot}-{other}"
        train = world.pairs(pivot, other, pairs)
        test = _unseen(
            world.pairs(pivot, other, 100 * test_pairs, stream="parallel-test", shares=shares),
            test_pairs,
            seen,
        )
        files += [
            (f"pairs/{name}.tsv", map("\t".join, train)),
            (f"test/{name}.tsv", map("\t".join, test)),
            (f"dictionaries/{name}.txt", map("\t".join, world.dictionary(pivot, other))),
        ]
    for number, (name, lines) in enumerate(files, start=1):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        if progress is not None:
            progress(name, number, len(files))


def _documents(
    world: World, language: str, sentences: int, shares: tuple[str, ...]
) -> Iterator[str]:
    left = sentences
    for document in world.text(language, sentences, shares=shares):
        yield from document[:left]
        left -= len(document[:left])
        if left == 0:
            return
        yield ""


def _unseen(
    pairs: Iterable[tuple[str, str]], wanted: int, seen: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of another stream, left out where the pivot's sentence was seen before.

    The pivot decides alone, so the test files of all languages stay parallel.
    """
    given: set[str] = set()
    for pair in pairs:
        if len(given) == wanted:
            return
        if pair[0] not in seen and pair[0] not in given:
            given.add(pair[0])
            yield pair
