"""From the tables of dumps to the knowledge of a corpus: titles, entities, mentions, triples."""

from __future__ import annotations

from isoglot.corpus.knowledge.link.run import link
from isoglot.corpus.knowledge.link.settings import LinkConfig

__all__ = ["LinkConfig", "link"]
