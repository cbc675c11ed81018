"""Co-occurrence counts of word pairs and of their translations (MLM-GC, Figures 1 and 3)."""
