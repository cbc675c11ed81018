"""The testbed as a prepared corpus: generated text, prepared as any other raw files are.

With several processes (torchrun sets RANK), rank 0 makes the corpus and the others poll its files:
a process group would have to be set up before the recipe is known to need one.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError, RecipeError, nearest
from isoglot.locks import lock_folder
from isoglot.testbed import ALL_LANGUAGES, LANGUAGES, NO_LANGUAGE

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from isoglot.corpus.pipeline.plan import PrepareConfig

PIVOT = "en"
TEST_PAIRS = 300
_TIMEOUT_SECONDS = 600.0
"""How long the other ranks wait for rank 0."""

SMALL: dict[str, Any] = {
    "num_sentences": 20_000,
    "num_pairs": 1,
    "num_concepts": 20,
    "max_entities": 12,
    "partition": (*[ALL_LANGUAGES] * 9, NO_LANGUAGE),
    "num_pages": 0,
    "vocab_size": 1000,
}
"""Some fifty words, no knowledge; a tenth of all meanings is kept for the test sentences."""


def named_corpus(name: str, folder: Path, console: Console) -> Path:
    """Generate the corpus that a recipe names into the folder; gives the corpus folder.

    `testbed` has all languages, `testbed-en-es` two, with a vocabulary of their own. Words of
    `testbed-zipf` follow Zipf's law (see `World`), `testbed-small` has few words, and in
    `testbed-disjoint-en-es` no meaning is said in both languages. Names combine, as in
    `testbed-zipf-small-en-es`.
    """
    _, *words = name.split("-")
    languages = tuple(word for word in words if word in LANGUAGES)
    variants: dict[str, dict[str, Any]] = {
        "zipf": {"zipf": True},
        "small": SMALL,
        "disjoint": {"partition": (*languages, NO_LANGUAGE)},
    }
    settings: dict[str, Any] = {}
    for word in words:
        if word not in languages:
            if word not in variants:
                raise RecipeError(
                    f"corpus: {name!r} asks for {word!r}, which the testbed does not have: "
                    f"{nearest(word, [*variants, *LANGUAGES])}"
                )
            settings |= variants[word]
    return generated_corpus(folder, console, languages=languages or None, **settings)


def generated_corpus(
    folder: Path,
    console: Console,
    *,
    languages: tuple[str, ...] | None = None,
    num_sentences: int = 20_000,
    num_pairs: int = 10_000,
    num_concepts: int | None = None,
    max_entities: int | None = None,
    zipf: bool = False,
    partition: tuple[str, ...] = (),
    num_pages: int = 4000,
    vocab_size: int = 4000,
) -> Path:
    """Generate text, translations and knowledge and prepare them; gives the corpus folder.

    With `num_pages=0` it has no knowledge.

    Raises:
        CorpusError: rank 0 did not finish the corpus within ten minutes.
    """
    from isoglot import testbed
    from isoglot.corpus.pipeline.run import prepare
    from isoglot.demo.testbed_knowledge import write_knowledge

    languages = languages or testbed.LANGUAGES
    corpus, raw = folder / "corpus", folder / "raw"
    config = _prepare_config(languages, vocab_size)
    if os.environ.get("RANK", "0") != "0":
        _wait_for_rank_0(config, corpus, raw, knowledge=num_pages > 0)
        return corpus
    if _is_finished(config, corpus, raw, knowledge=num_pages > 0):
        return corpus  # perhaps on a disk that is only read
    with lock_folder(folder, wait=True):
        if not (corpus / "manifest.json").is_file():
            console.print(f"Generating text and translations in {', '.join(languages)}: {raw}")
            testbed.write_raw_files(
                raw,
                languages=languages,
                num_sentences=num_sentences,
                num_pairs=num_pairs,
                num_test_pairs=TEST_PAIRS,
                num_concepts=num_concepts,
                max_entities=max_entities,
                zipf=zipf,
                partition=partition,
            )
            console.print(f"Preparing {corpus}: cleaning, training a tokenizer, encoding")
        prepare(config, corpus, base=raw, overwrite=True)
        if num_pages:
            world = testbed.World(num_concepts=num_concepts, max_entities=max_entities, zipf=zipf)
            write_knowledge(corpus, world, languages, num_pages)
    return corpus


def _is_finished(config: PrepareConfig, corpus: Path, raw: Path, *, knowledge: bool) -> bool:
    from isoglot.corpus.pipeline.run import is_prepared
    from isoglot.demo.testbed_knowledge import has_knowledge

    return is_prepared(config, corpus, base=raw) and (not knowledge or has_knowledge(corpus))


def _prepare_config(languages: tuple[str, ...], vocab_size: int) -> PrepareConfig:
    from isoglot.corpus.deduplication.hashing import DuplicatesConfig
    from isoglot.corpus.pipeline.plan import PrepareConfig
    from isoglot.corpus.reading.sources import SourceConfig
    from isoglot.corpus.tokenization.build import TokenizerConfig

    text: dict[str, tuple[str, ...]] = {code: (f"text/{code}.txt",) for code in languages}
    pairs: dict[str, tuple[str, ...]] = {
        f"{PIVOT}-{code}": (f"pairs/{PIVOT}-{code}.tsv",) for code in languages if code != PIVOT
    }
    sources = {"text": SourceConfig(kind="text", format="lines", files=text)}
    if pairs:
        sources["pairs"] = SourceConfig(kind="pairs", format="tsv", files=pairs)
    return PrepareConfig(
        sources=sources,
        tokenizer=TokenizerConfig(
            vocab_size=vocab_size, byte_fallback=False, character_coverage=1.0, max_sentences=40_000
        ),
        # generated sentences repeat by design
        duplicates=DuplicatesConfig(scope="none"),
    )


def _wait_for_rank_0(config: PrepareConfig, corpus: Path, raw: Path, *, knowledge: bool) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not _is_finished(config, corpus, raw, knowledge=knowledge):
        if time.monotonic() > deadline:
            raise CorpusError(
                f"{corpus}: the process of rank 0 did not prepare it within "
                f"{_TIMEOUT_SECONDS:.0f} seconds. Look at its messages; if it runs on another "
                "machine, start in a folder that both see."
            )
        time.sleep(0.2)
