"""What each lever of pre-training is worth: held-out perplexity at equal GPU seconds."""
