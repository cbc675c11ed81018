"""Measurements of the project: each file says how to run it and what it prints."""
