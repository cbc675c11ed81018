"""Wikitext to plain sentences that remember where their links were."""
