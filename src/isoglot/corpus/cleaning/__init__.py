"""Cleaning: sentences are split, normalized and checked; train and held-out text are separated."""
