"""A prepared corpus of generated text: the testbed on disk, prepared as any other text is.

Of several processes of one run (torchrun numbers them in RANK), the first makes the corpus. The
others wait for the files alone: a process group would have to be set up before the recipe is known
to need one.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from isoglot.errors import CorpusError, RecipeError, nearest
from isoglot.testbed import EVERYONE, LANGUAGES, NOBODY

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from isoglot.corpus import PrepareConfig

PIVOT = "en"
TEST_PAIRS = 300
_PATIENCE = 600.0
"""Seconds that a process waits for the one that makes the corpus."""


SMALL: dict[str, Any] = {
    "sentences": 20_000,
    "pairs": 1,
    "concepts": 20,
    "entities": 12,
    "shares": (*[EVERYONE] * 9, NOBODY),
    "pages": 0,
    "vocabulary": 1000,
}
"""A world of some fifty words, without knowledge; no test sentence is in its text."""


def named_corpus(name: str, folder: Path, terminal: Console) -> Path:
    """The corpus that a name asks for, generated into the folder; gives the corpus folder.

    `testbed` has all languages, `testbed-en-es` two, with a vocabulary of their own. In
    `testbed-uneven` words have favourite company (see `World`), in `testbed-small` they are few,
    and in `testbed-apart-en-es` what one language says is never said by the other. All may stand in
    one name, as in `testbed-uneven-small-en-es`.
    """
    _, *asked = name.split("-")
    languages = tuple(word for word in asked if word in LANGUAGES)
    kinds: dict[str, dict[str, Any]] = {
        "uneven": {"uneven": True},
        "small": SMALL,
        "apart": {"shares": (*languages, NOBODY)},
    }
    settings: dict[str, Any] = {}
    for word in asked:
        if word not in languages:
            if word not in kinds:
                raise RecipeError(
                    f"corpus: {name!r} asks for {word!r}, which the testbed does not have: "
                    f"{nearest(word, [*kinds, *LANGUAGES])}"
                )
            settings |= kinds[word]
    return generated_corpus(folder, terminal, languages=languages or None, **settings)


def generated_corpus(
    folder: Path,
    terminal: Console,
    *,
    languages: tuple[str, ...] | None = None,
    sentences: int = 20_000,
    pairs: int = 10_000,
    concepts: int | None = None,
    entities: int | None = None,
    uneven: bool = False,
    shares: tuple[str, ...] = (),
    pages: int = 4000,
    vocabulary: int = 4000,
) -> Path:
    """Generate text, translations and knowledge and prepare them; gives the corpus folder.

    Without `pages` (0) it has no knowledge.

    Raises:
        CorpusError: another process was to make the corpus, and did not within ten minutes.
    """
    from isoglot import testbed
    from isoglot.corpus import prepare
    from isoglot.demo.knowledge import write_knowledge

    languages = languages or testbed.LANGUAGES
    corpus, raw = folder / "corpus", folder / "raw"
    config = _config(languages, vocabulary)
    if os.environ.get("RANK", "0") != "0":
        _wait_for(config, corpus, raw, knowledge=pages > 0)
        return corpus
    if not (corpus / "manifest.json").is_file():
        terminal.print(f"writing text and translations in {', '.join(languages)} to {raw}")
        testbed.write(
            raw,
            languages=languages,
            sentences=sentences,
            pairs=pairs,
            test_pairs=TEST_PAIRS,
            concepts=concepts,
            entities=entities,
            uneven=uneven,
            shares=shares,
        )
        terminal.print(f"preparing {corpus}: cleaning, training a tokenizer, encoding")
    prepare(config, corpus, base=raw)
    if pages:
        world = testbed.World(concepts=concepts, entities=entities, uneven=uneven)
        write_knowledge(corpus, world, languages, pages)
    return corpus


def _config(languages: tuple[str, ...], vocabulary: int) -> PrepareConfig:
    """How the testbed's files are prepared."""
    from isoglot.corpus import DuplicatesConfig, PrepareConfig, SourceConfig, TokenizerConfig

    others = [language for language in languages if language != PIVOT]
    sources = {
        "text": SourceConfig(
            kind="text",
            format="lines",
            files={code: (f"text/{code}.txt",) for code in languages},
        )
    }
    if others:
        sources["pairs"] = SourceConfig(
            kind="pairs",
            format="tsv",
            files={f"{PIVOT}-{code}": (f"pairs/{PIVOT}-{code}.tsv",) for code in others},
        )
    return PrepareConfig(
        sources=sources,
        tokenizer=TokenizerConfig(
            size=vocabulary, byte_fallback=False, character_coverage=1.0, max_sentences=40_000
        ),
        # a small world says some things often: that is how it speaks, not a fault of its files
        duplicates=DuplicatesConfig(scope="none"),
    )


def _wait_for(config: PrepareConfig, corpus: Path, raw: Path, *, knowledge: bool) -> None:
    """Return once the first process has no more to do, or give up."""
    from isoglot.corpus import is_prepared
    from isoglot.demo.knowledge import has_knowledge

    deadline = time.monotonic() + _PATIENCE
    while not is_prepared(config, corpus, base=raw) or (knowledge and not has_knowledge(corpus)):
        if time.monotonic() > deadline:
            raise CorpusError(
                f"{corpus}: the process of rank 0 was to prepare it and did not within "
                f"{_PATIENCE:.0f} seconds. Look at its messages; if it runs on another machine, "
                "start in a folder that both see."
            )
        time.sleep(0.2)
