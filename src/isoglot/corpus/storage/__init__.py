"""The prepared corpus on disk: shards of token ids, the manifest, and the opened `Corpus`."""
