"""Wikitext to plain sentences with the spans of their links."""
