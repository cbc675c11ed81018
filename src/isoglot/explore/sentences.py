"""The sentences that a page shows: of the corpus, of pairs and of text files, by language.

A corpus holds token ids; its sentences are decoded. They are evenly spaced over its training split,
at most `ExploreSession.limit` of a language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.storage.shards import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isoglot.corpus import Corpus
    from isoglot.explore.session import ExploreSession


@dataclass(frozen=True)
class Collection:
    """Sentences of several languages from one place; read when they are first needed."""

    name: str
    """On the page."""
    languages: tuple[str, ...]
    """Sorted codes."""
    read: Callable[[], dict[str, list[str]]]
    """Reads the sentences of each language, which may be repeated."""

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """Language -> its different sentences, without blank ones."""
        found = self.read()
        return {
            code: list(dict.fromkeys(text for one in found.get(code, ()) if (text := one.strip())))
            for code in self.languages
        }


def collections_of(session: ExploreSession) -> dict[str, Collection]:
    """The collections of a session by name; none has no language."""
    found = []
    if session.pairs_files:
        codes = sorted({code for name in session.pairs for code in name.split("-")})
        found.append(Collection("pairs", tuple(codes), lambda: _sides(session)))
    if session.text_files:
        found.append(Collection("text", tuple(sorted(session.text_files)), lambda: session.texts))
    if (corpus := session.corpus) is not None:
        found.append(
            Collection("corpus", corpus.languages, lambda: decode_corpus(corpus, session.limit))
        )
    return {one.name: one for one in found if one.languages}


def _sides(session: ExploreSession) -> dict[str, list[str]]:
    sides: dict[str, list[str]] = {}
    for name, texts in session.pairs.items():
        for code, side in zip(name.split("-"), texts, strict=True):
            sides.setdefault(code, []).extend(side)
    return sides


def translations(session: ExploreSession) -> dict[str, list[str]]:
    """Sentence of the files of pairs -> its translations there."""
    found: dict[str, list[str]] = {}
    for first, second in session.pairs.values():
        for one, two in zip(first, second, strict=True):
            found.setdefault(one, []).append(two)
            found.setdefault(two, []).append(one)
    return found


def decode_corpus(corpus: Corpus, limit: int) -> dict[str, list[str]]:
    """Language -> sentences of a corpus: of its text, and of its pairs where that is too little."""
    from tokenizers import Tokenizer

    from isoglot.corpus.tokenization.vocabulary import TOKENIZER_FILE

    tokenizer = Tokenizer.from_file(str(corpus.tokenizer_folder / TOKENIZER_FILE))
    found: dict[str, list[str]] = {}
    for source, language, column, code in _columns(corpus):
        own = found.setdefault(code, [])
        table = corpus.table(source, language, "train")
        number = max(0, min(limit - len(own), table.num_rows))
        rows = np.linspace(0, table.num_rows - 1, number).astype(int).tolist()
        ids = [table.ids(column, row).tolist() for row in rows]
        own.extend(tokenizer.decode_batch(ids, skip_special_tokens=False))
    return found


def _columns(corpus: Corpus) -> Iterator[tuple[str, str, str, str]]:
    """(source, language or pair, column, language) of every column of sentences, text first."""
    for kind in ("text", "pairs"):
        for source in corpus.sources(kind):
            entry = corpus.manifest.sources[source]
            for name in entry.languages:
                codes = name.split("-") if kind == "pairs" else [name]
                for column, code in zip(columns_of(entry.kind), codes, strict=True):
                    yield source, name, column, code
