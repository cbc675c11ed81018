"""An existing model with another vocabulary: transplanted, grown or trimmed.

run.transplant(source, tokenizer, out, ...)  the source's body with another tokenizer's vocabulary
run.grow(source, out, words, ...)            more words, the old tokens unchanged
run.trim(source, out, texts=...)             only the tokens that some text uses
"""
