"""Tokenizers: training, opening, pretokenization, and the encoding of cleaned text into shards."""
