"""The processes of a run: what they share, agree on and wait for, and what happens if one ends."""
