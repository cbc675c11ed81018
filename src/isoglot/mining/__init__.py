"""Bitext mining: translations among the lines of two files, by ratio margins of sentence vectors.

lines (`sentences`) -> vectors on disk (`vectors`) -> neighbors (`search`, `faiss_search`) -> pairs
(`mine`). The margin and the strategies are those of `evaluation.retrieval` and `evaluation.mining`.
"""
