"""Scoring an encoder across languages: reads a Hugging Face folder, gives `isoglot.results`.

`evaluate` is the public function. A kind of task is scored by one function (`evaluate.SCORERS`):
retrieval and mining, word alignment, word vectors (lexicons, analogies, similarity), probing.
"""
