"""Reading Wikipedia and Wikidata dumps as they are distributed, in parts that share nothing."""
