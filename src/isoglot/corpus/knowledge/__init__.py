"""Knowledge from Wikipedia and Wikidata: dumps to entities, descriptions, mentions and triples."""
