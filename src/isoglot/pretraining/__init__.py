"""Training: the loop, the module it trains, optimizer, checkpoints, hooks, and whole runs."""
