"""The five papers from nothing to their main tables: one page and one script each (README.md)."""
