"""Reports: results, training metrics and corpora as one HTML page, tables and figures.

Reads the JSON files that other commands write into their folders; opens no model and imports no
torch. `page` builds the page from `leaderboard` (scores), `training`, `corpus_stats`, `figures`.
"""
