"""Training: the loop, the module it trains, optimizer, checkpoints, hooks, and the run of a recipe."""
