"""What of the dumps becomes knowledge of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from isoglot.corpus.knowledge.store_writer import MOST_TOKENS
from isoglot.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """How tables of dumps are joined into entities, descriptions, mentions and triples."""

    languages: tuple[str, ...] = ()
    """Wikipedias to take, by language code; none means all that were extracted."""
    redirect_hops: int = 4
    """Redirects in a row that are followed."""
    description_tokens: int = MOST_TOKENS
    """Tokens of a page's lead that describe its entity; XLM-K takes 256."""
    mention_tokens: int = 64
    """Longest mention; a longer anchor text is hardly a name."""
    relation_floor: int = 1
    """Relations with fewer triples are left out."""
    heldout_share: float = 0.01
    """Share of the pages, and of the triples, that are kept out of training."""
    heldout_seed: int = 0
    """Which pages and triples are held out."""

    def __post_init__(self) -> None:
        require(self.redirect_hops >= 1, "redirect_hops must be 1 or more")
        require(
            1 <= self.description_tokens <= MOST_TOKENS,
            f"description_tokens must be from 1 to {MOST_TOKENS}",
        )
        require(self.mention_tokens >= 1, "mention_tokens must be 1 or more")
        require(self.relation_floor >= 1, "relation_floor must be 1 or more")
        require(0 <= self.heldout_share < 1, "heldout_share must be from 0 to below 1")
