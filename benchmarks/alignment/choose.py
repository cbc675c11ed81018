"""What is trained on: an even choice from all sources of a language, up to a budget.

Small sources are taken whole and large ones in equal parts, evenly spaced, so that no novel or book
of the Bible is missing; the Bible and translations serve as text only where other text is short.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, TypeVar

from benchmarks.alignment.sources import Document, Pair, documents, pairs, verses

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.alignment.decontamination import EvaluationSentences
    from benchmarks.alignment.languages import Language

MOST_UNLIKE = 2.0
"""Pairs whose ratio of lengths is this many times off their source's median are dropped."""
SHORT = 20
"""Characters up to which a pair's ratio of lengths says nothing."""

Item = TypeVar("Item")


def choose_pairs(
    data: Path, language: Language, evaluation_sentences: EvaluationSentences, most: int
) -> list[Pair]:
    """At most so many pairs with English."""
    sources = {
        name: evaluation_sentences.filter_pairs(alike(found), f"pairs/{name}/{language.code}")
        for name, found in pairs(data, language).items()
    }
    return fill(sources, {name: len(found) for name, found in sources.items()}, most)


def choose_text(
    data: Path,
    language: Language,
    evaluation_sentences: EvaluationSentences,
    tokens: int,
    translated: list[Pair],
) -> list[Document]:
    """Documents of about so many tokens."""
    budget = tokens * language.characters
    own = _cleaned(documents(data, language), language, evaluation_sentences)
    sizes = {name: _characters(found) for name, found in own.items()}
    missing = budget - sum(sizes.values())
    if missing <= 0:
        return fill(own, sizes, budget)
    more = {"bible": verses(data, language), "pairs": [[second] for _, second in translated]}
    more = _cleaned(more, language, evaluation_sentences)
    sizes = {name: _characters(found) for name, found in more.items()}
    return [
        *(document for found in own.values() for document in found),
        *fill(more, sizes, missing),
    ]


def alike(found: list[Pair]) -> list[Pair]:
    """Pairs whose sides have about the ratio of lengths that is usual for their source."""
    ratios = [len(second) / len(first) for first, second in found if first and second]
    if not ratios:
        return []
    usual = median(ratios)
    kept = []
    for first, second in found:
        off = len(second) / (usual * max(len(first), 1))
        short = max(len(first), len(second)) <= SHORT
        if first and second and (short or 1 / MOST_UNLIKE <= off <= MOST_UNLIKE):
            kept.append((first, second))
    return kept


def fill(sources: dict[str, list[Item]], sizes: dict[str, int], budget: float) -> list[Item]:
    """Items of all sources up to a budget: small sources whole, the others in equal parts."""
    taken: list[Item] = []
    smallest_first = sorted(sources, key=lambda name: sizes[name])
    for number, name in enumerate(smallest_first):
        part = min(budget / (len(sources) - number), sizes[name])
        taken += spread(sources[name], part / max(sizes[name], 1))
        budget -= part
    return taken


def spread(items: list[Item], share: float) -> list[Item]:
    """This share of the items, evenly spaced."""
    if share >= 1:
        return items
    return [item for i, item in enumerate(items) if int((i + 1) * share) > int(i * share)]


def _cleaned(
    sources: dict[str, list[Document]],
    language: Language,
    evaluation_sentences: EvaluationSentences,
) -> dict[str, list[Document]]:
    """The same sources without the tests' sentences, and with each sentence once."""
    seen: set[str] = set()
    cleaned: dict[str, list[Document]] = {}
    for name, found in sources.items():
        cleaned[name] = []
        for document in found:
            kept = evaluation_sentences.filter(document, f"text/{name}/{language.code}")
            new = [text for text in dict.fromkeys(kept) if text not in seen]
            seen.update(new)
            if new:
                cleaned[name].append(new)
    return cleaned


def _characters(found: list[Document]) -> int:
    return sum(len(text) for document in found for text in document)
