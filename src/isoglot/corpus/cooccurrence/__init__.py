"""Global co-occurrence of a prepared corpus: counts of token pairs (MLM-GC), phrases of high PMI.

pair_table      PairConfig, PairTable: what training reads
count           a corpus to a PairTable: text chunks -> sorted runs -> merged table
phrases         PhraseConfig, Phrases: what masking reads
find_phrases    a corpus to Phrases
"""
