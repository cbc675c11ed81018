"""What dumps gave and what a corpus knows, as tables on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.cli.tables import print_table
from isoglot.corpus.knowledge.store_about import FILE, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isoglot.corpus import Corpus
    from isoglot.corpus.knowledge.store import Knowledge
    from isoglot.corpus.knowledge.store_about import About, LanguageCounts

_PAGES = ("pages", "articles", "redirects", "disambiguations", "sentences", "links kept")
_ENTITIES = ("lines", "items", "sitelinks", "statements", "claims kept")
_NOT_KEPT = {"links dropped", "claims dropped"}
_SAID_ELSEWHERE = {"parts", "faults", "language", "wiki", "cut short", "links"}


def show_counts(counts: Mapping[str, Any]) -> None:
    """Print what became of every dump file that was extracted."""
    files: dict[str, dict[str, Any]] = counts["files"]
    wikis = {name: entry for name, entry in files.items() if "language" in entry}
    others = {name: entry for name, entry in files.items() if name not in wikis}
    for columns, entries in ((_PAGES, wikis), (_ENTITIES, others)):
        if entries:
            print_table(
                ["dump", *columns, "dropped"],
                [
                    [
                        Path(name).name,
                        *(f"{entry.get(column, 0):,}" for column in columns),
                        _reasons(_dropped(entry, columns)),
                    ]
                    for name, entry in entries.items()
                ],
            )
    for name, entry in files.items():
        if entry.get("cut short"):
            print(f"{name}: ends before its end; it was not fetched whole.")
        for fault in entry["faults"][:3]:
            print(f"{name}: byte {fault['byte']:,}: {fault['fault']}")


def show_about(about: About) -> None:
    """Print what was linked, and why the rest was not."""
    print_table(
        ["language", "descriptions", "mentions", "held out", "links dropped", "pages dropped"],
        [
            [
                language,
                f"{counts.descriptions:,}",
                f"{counts.mentions['train']:,}",
                f"{counts.mentions['heldout']:,}",
                _reasons(about.dropped.get(f"mentions/{language}", {})),
                _reasons(about.dropped.get(f"descriptions/{language}", {})),
            ]
            for language, counts in about.counts.items()
        ],
    )
    triples = about.triples
    print(
        f"\n{about.entities:,} entities; {sum(triples.values()):,} triples "
        f"({triples['heldout']:,} held out) of {about.relations:,} relations"
    )
    if about.dropped.get("triples"):
        print(f"claims dropped: {_reasons(about.dropped['triples'])}")


def has_knowledge(corpus: Corpus) -> bool:
    """Was the corpus linked?"""
    return (corpus.folder / FOLDER / FILE).is_file()


def show_knowledge(knowledge: Knowledge, *, alphas: Sequence[float]) -> None:
    """Print what a corpus knows, and how far its languages cover it."""
    from isoglot.batching.mixture import smoothed

    show_about(knowledge.about)
    counts = knowledge.about.counts
    mentions = np.array([count.mentions["train"] for count in counts.values()], np.float64)
    drawn = np.zeros((len(mentions), len(alphas)))
    if mentions.any():
        for column, alpha in enumerate(alphas):
            drawn[mentions > 0, column] = smoothed(mentions[mentions > 0], alpha)
    print("\nHow far each language covers the entities, and how often its mentions are drawn:\n")
    print_table(
        [
            "language",
            "entities described",
            "tokens a mention",
            *(f"alpha = {alpha:g}" for alpha in alphas),
        ],
        [
            [
                language,
                f"{100 * count.descriptions / max(knowledge.about.entities, 1):.1f} %",
                _tokens_a_mention(count),
                *(f"{100 * share:.1f} %" for share in shares),
            ]
            for (language, count), shares in zip(counts.items(), drawn, strict=True)
        ],
    )
    several = np.diff(knowledge.described.first["first"])
    if len(several):
        print(
            f"\nentities described in 2 languages or more: {100 * (several > 1).mean():.1f} % "
            f"(in {several.mean():.1f} on average, in {several.max()} at most)"
        )


def _tokens_a_mention(counts: LanguageCounts) -> str:
    """How much text there is for one; XLM-K counts about 64 tokens."""
    mentions = sum(counts.mentions.values())
    return f"{sum(counts.sentence_tokens.values()) / mentions:.0f}" if mentions else "-"


def _dropped(entry: Mapping[str, Any], columns: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for name, value in entry.items():
        if name in _NOT_KEPT:
            yield from value.items()
        elif name not in columns and name not in _SAID_ELSEWHERE and value:
            yield name, value


def _reasons(reasons: Any) -> str:
    pairs = reasons.items() if hasattr(reasons, "items") else reasons
    return ", ".join(f"{number:,} {reason}" for reason, number in pairs)
