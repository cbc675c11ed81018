"""What a run reports: losses, held-out scores, warnings, samples; early stopping by the scores."""
