"""Isoglot: cross-lingual language models, from raw text to a trained multilingual encoder."""

__version__ = "0.1.0"
