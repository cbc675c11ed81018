"""The settings of linking, and of the knowledge that `isoglot prepare` links itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from isoglot.corpus.knowledge.store_writer import MAX_DESCRIPTION_TOKENS
from isoglot.ranges import NumTokens, Range, Seed, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """How tables of dumps become entities, descriptions, mentions and triples."""

    languages: tuple[str, ...] = ()
    """Wikipedias to use, by language code; empty: all that were extracted."""
    max_redirects: Annotated[int, Range(1, 100)] = 4
    """Consecutive redirects that are followed."""
    description: Literal["page", "lead"] = "page"
    """An entity is described by its page (XLM-K), or by the text before the first heading alone."""
    max_description_tokens: Annotated[int, Range(1, MAX_DESCRIPTION_TOKENS)] = (
        MAX_DESCRIPTION_TOKENS
    )
    """First tokens of a page that describe its entity; XLM-K takes 256."""
    max_mention_tokens: NumTokens = 64
    """Mentions with more tokens are dropped."""
    min_relation_triples: Annotated[int, Range(1, 10**12)] = 1
    """Relations with fewer triples are dropped."""
    exclude: tuple[str, ...] = ()
    """Evaluation files or patterns: sentences that occur in them are dropped, with their mentions,
    and are left out of descriptions; names are relative to where the command runs."""
    exclude_min_bytes: Annotated[int, Range(0, 10**9)] = 10
    """Smallest text of an evaluation file that is looked for: bytes of letters and digits."""
    heldout_share: Annotated[float, Range(0, 1, below=True)] = 0.01
    """Share of the pages, and of the triples, that are held out of training."""
    heldout_seed: Seed = 0
    """Random seed of the choice of held-out pages and triples."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSource(LinkConfig):
    """Tables of knowledge that are linked to a corpus when it is prepared."""

    tables: str
    """Folder that `isoglot knowledge extract` or `graph` wrote, relative to the settings'."""

    def link_config(self, **changes: object) -> LinkConfig:
        """The settings of linking alone, some of them changed."""
        given = {one.name: getattr(self, one.name) for one in fields(LinkConfig)}
        return LinkConfig(**{**given, **changes})
