"""Readers of raw files: formats, compression, lines. To add a format, see `registry`."""
