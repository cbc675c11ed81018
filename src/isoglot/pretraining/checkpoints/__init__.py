"""Checkpoints: what they hold, how they are written while training goes on, how they are read."""
