"""`isoglot prepare`: raw files in; shards of token ids, a tokenizer and a manifest out."""
