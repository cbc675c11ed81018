"""Tokens that belong together: n-grams of high PMI, found in a corpus, for masking as units."""

from __future__ import annotations

from isoglot.corpus.phrases.find import PhraseConfig, find_phrases, phrases_of
from isoglot.corpus.phrases.phrases import Phrases

__all__ = ["PhraseConfig", "Phrases", "find_phrases", "phrases_of"]
