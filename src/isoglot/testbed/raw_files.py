"""Writes a world as the raw files that a user would have: text, translations, dictionaries.

text/<language>.txt             one sentence a line, a blank line between documents
pairs/<pivot>-<language>.tsv    two columns: training translations
test/<pivot>-<language>.tsv     held-out translations: no sentence twice, none in training
dictionaries/<pivot>-<language>.txt   a word and its translation, separated by a tab
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.atomic import write_text
from isoglot.testbed.languages import LANGUAGES
from isoglot.testbed.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def write_raw_files(
    folder: str | Path,
    *,
    seed: int = 0,
    languages: Sequence[str] = LANGUAGES,
    num_sentences: int = 20000,
    num_pairs: int = 10000,
    num_test_pairs: int = 1000,
    pivot: str = "en",
    num_concepts: int | None = None,
    max_entities: int | None = None,
    zipf: bool = False,
    partition: tuple[str, ...] = (),
    skip_sentences: int = 0,
) -> None:
    """Write the files into the folder, made if missing.

    Args:
        folder: Where the files go.
        seed: Random seed of the world.
        languages: Which of the world's languages get files.
        num_sentences: Lines of text per language; the last document is cut to fit.
        num_pairs: Training translations per language other than the pivot.
        num_test_pairs: Test translations per language other than the pivot.
        pivot: The language of the first column.
        num_concepts: Size of the lexicon, see `World`.
        max_entities: Number of entities, see `World`.
        zipf: Distribution of words, see `World`.
        partition: Which meanings are said in which language, see `World.text`; test pairs have
            meanings of NO_LANGUAGE.
        skip_sentences: Lines of text per language that are left out at the beginning: the files of
            another call have them, and no line comes twice.
    """
    world = World(seed, num_concepts=num_concepts, max_entities=max_entities, zipf=zipf)
    root = Path(folder)
    files: list[tuple[str, Iterable[str]]] = [
        (
            f"text/{language}.txt",
            _documents(world, language, num_sentences, partition, skip_sentences),
        )
        for language in languages
    ]
    seen = frozenset(first for first, _ in world.pairs(pivot, pivot, num_pairs))
    for other in languages:
        if other == pivot:
            continue
        name = f"{pivot}-{other}"
        candidates = world.pairs(
            pivot, other, 100 * num_test_pairs, stream="parallel-test", partition=partition
        )
        files += [
            (f"pairs/{name}.tsv", map("\t".join, world.pairs(pivot, other, num_pairs))),
            (f"test/{name}.tsv", map("\t".join, _unseen(candidates, num_test_pairs, seen))),
            (f"dictionaries/{name}.txt", map("\t".join, world.dictionary(pivot, other))),
        ]
    for name, lines in files:
        path = root / name
        write_text(path, "".join(f"{line}\n" for line in lines))


def _documents(
    world: World, language: str, num_sentences: int, partition: tuple[str, ...], skip: int
) -> Iterator[str]:
    left = num_sentences
    for document in world.text(language, skip + num_sentences, partition=partition):
        kept = document[skip:]
        skip -= len(document) - len(kept)
        if not kept:
            continue
        yield from kept[:left]
        left -= len(kept[:left])
        if left == 0:
            return
        yield ""


def _unseen(
    pairs: Iterable[tuple[str, str]], wanted: int, seen: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Pairs whose pivot sentence is neither in `seen` nor repeated.

    The pivot decides alone, so the test files of all languages stay parallel.
    """
    given: set[str] = set()
    for pair in pairs:
        if len(given) == wanted:
            return
        if pair[0] not in seen and pair[0] not in given:
            given.add(pair[0])
            yield pair
