"""Measurements; each file says what it measures and how it is run."""
