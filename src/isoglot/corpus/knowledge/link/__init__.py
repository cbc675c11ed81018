"""Tables of dumps to the knowledge store of a corpus: entities, descriptions, mentions, triples."""
