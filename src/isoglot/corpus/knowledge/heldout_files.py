"""The held-out part of a corpus's knowledge as files of two tasks that any model is scored on.

    entity-linking/{language}-{other}.jsonl      held-out mentions: a name on its page
    object-entailment/{language}-{other}.jsonl   held-out facts: a subject's description, a relation

Each line has the right entity and its description in the other language; lines without a text are
more candidates (`isoglot.tasks.linking` reads the files). Tokens are decoded to text, so that
models with other tokenizers read them too.
"""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.atomic import write_text
from isoglot.corpus.knowledge.store import row_range
from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.errors import CorpusError
from isoglot.locks import lock_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.corpus.storage.corpus import Corpus
    from isoglot.corpus.storage.shards import Shard
    from isoglot.types import IntArray

Row = dict[str, Any]
_MAX_CONTEXT_TOKENS = 254
"""Tokens of a mention's context, as the stream of mentions has by default."""


def write_heldout_files(
    corpus: Corpus,
    out: Path,
    *,
    max_examples: int = 1000,
    candidates: int = 1000,
    pairs: Collection[tuple[str, str]] | None = None,
) -> dict[str, dict[str, int]]:
    """Writes a file for each task and pair of languages; gives task -> pair -> its queries.

    A file has at most `max_examples` queries, evenly spaced, and at least `candidates` candidates,
    if as many entities are described in the other language. `pairs` are the languages of queries
    and of candidates; none: all pairs.
    """
    with lock_folder(out):
        return _write_files(corpus, out, max_examples, candidates, pairs)


def nearest_pairs(knowledge: Knowledge) -> list[tuple[str, str]]:
    """Each language, and the one in which most entities of its held-out mentions are described."""
    found = []
    for language in knowledge.languages:
        entities = knowledge.mentions(language, "heldout")["entity"]
        described = {
            other: int((knowledge.descriptions(other).rows(entities) >= 0).sum())
            for other in knowledge.languages
            if other != language
        }
        if described:
            found.append((language, max(described, key=described.__getitem__)))
    return found


def _write_files(
    corpus: Corpus,
    out: Path,
    max_examples: int,
    candidates: int,
    pairs: Collection[tuple[str, str]] | None,
) -> dict[str, dict[str, int]]:
    knowledge = corpus.knowledge
    decode = _Decoder(corpus, knowledge)
    counts: dict[str, dict[str, int]] = {"entity-linking": {}, "object-entailment": {}}
    for pair in permutations(knowledge.languages, 2) if pairs is None else pairs:
        for task, rows in (
            ("entity-linking", decode.mentions(*pair)),
            ("object-entailment", decode.facts(*pair)),
        ):
            found = _spaced(list(rows), max_examples)
            if not found:
                continue
            found += decode.more_candidates(pair[1], {row["entity"] for row in found}, candidates)
            lines = (json.dumps(row, ensure_ascii=False) for row in found)
            write_text(out / task / f"{'-'.join(pair)}.jsonl", "".join(f"{x}\n" for x in lines))
            counts[task]["-".join(pair)] = sum("text" in row for row in found)
    if not any(counts.values()):
        raise CorpusError(
            f"{knowledge.folder}: holds out no mention and no fact whose entity is described in a "
            "second language. Link it again with a larger heldout_share."
        )
    return counts


class _Decoder:
    """The held-out mentions and facts of a store, as text."""

    def __init__(self, corpus: Corpus, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._decode = text_decoder(open_tokenizer(corpus.tokenizer_folder))
        self._items = knowledge.entities["item"]

    def mentions(self, language: str, other: str) -> Iterator[Row]:
        """The mentions of a language whose entity is described in the other."""
        knowledge = self._knowledge
        table = knowledge.mentions(language, "heldout")
        sentences = knowledge.sentences(language, "heldout")
        described = knowledge.descriptions(other).rows(table["entity"]) >= 0
        for row in np.flatnonzero(described).tolist():
            ids, before = _context(sentences, int(table["sentence"][row]))
            whole = self._text(ids)
            begin, end = (
                self._text(ids[: before + int(table[name][row])]) for name in ("start", "end")
            )
            name = whole[len(begin) : len(end)]
            if not whole.startswith(end) or not name.strip():
                continue  # a token that ends inside a character
            start = len(end) - len(name.lstrip())
            yield {
                **self._candidate(int(table["entity"][row]), other),
                "text": whole,
                "start": start,
                "end": len(end),
            }

    def facts(self, language: str, other: str) -> Iterator[Row]:
        """The facts whose subject is described in a language and whose object in the other."""
        knowledge = self._knowledge
        table, relations = knowledge.triples("heldout"), knowledge.relations["relation"]
        subjects, objects = (knowledge.descriptions(code) for code in (language, other))
        good = (subjects.rows(table["subject"]) >= 0) & (objects.rows(table["object"]) >= 0)
        for row in np.flatnonzero(good).tolist():
            subject, relation, object_ = (
                int(table[name][row]) for name in ("subject", "relation", "object")
            )
            known = knowledge.objects(subject, relation)
            yield {
                **self._candidate(object_, other),
                "text": self._description(subject, language),
                "relation": int(relations[relation]),
                "also": [self._name(int(one)) for one in known if one != object_],
            }

    def more_candidates(self, language: str, taken: set[str], number: int) -> list[Row]:
        """Descriptions of other entities, evenly spaced, up to a number of candidates."""
        entities = self._knowledge.descriptions(language).table["entity"].tolist()
        left = [entity for entity in entities if self._name(entity) not in taken]
        return [
            self._candidate(one, language) for one in _spaced(left, max(number - len(taken), 0))
        ]

    def _candidate(self, entity: int, language: str) -> Row:
        return {"entity": self._name(entity), "description": self._description(entity, language)}

    def _name(self, entity: int) -> str:
        return f"Q{self._items[entity]}"

    def _description(self, entity: int, language: str) -> str:
        tokens = self._knowledge.descriptions(language)[entity]
        assert tokens is not None, "only described entities are asked for"
        return self._text(tokens)

    def _text(self, ids: IntArray) -> str:
        return self._decode(ids.tolist())


def _context(sentences: Shard, row: int) -> tuple[IntArray, int]:
    """The tokens of a sentence and of its page around it, and how many are before the sentence.

    Sentences are added in turn, before and behind, as in training: as many as fit.
    """
    pages, offsets = sentences["page"], sentences.offsets("tokens")
    low, high = row_range(pages, int(pages[row]), int(pages[row]) + 1)
    first, last = row, row + 1
    while first > low or last < high:
        begin, end = max(first - 1, low), min(last + 1, high)
        if offsets[end] - offsets[begin] > _MAX_CONTEXT_TOKENS:
            break
        first, last = begin, end
    tokens = sentences["tokens"][offsets[first] : offsets[last]]
    return tokens, int(offsets[row] - offsets[first])


def _spaced(rows: list[Any], number: int) -> list[Any]:
    """At most so many rows, evenly spaced."""
    if len(rows) <= number:
        return rows
    return [rows[place * len(rows) // number] for place in range(number)]
