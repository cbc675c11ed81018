"""Development pairs: the text of token ids, with words that were added to the vocabulary."""

from __future__ import annotations

import pytest
from tokenizers import decoders

from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.models.transplant.build_tokenizer import grow_tokenizer
from isoglot.models.transplant.tokens import TokenizerTokens
from tests.models.transplant.tiny_tokenizers import of_words

TEXTS = (
    "the dog saw the mwalimu mzuri",
    "mwalimu mwalimu mzuri the dog",
    "the mzuri ( mwalimu ) .",
    "the dog saw the dog",
    "mwalimu",
)


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "bytes"])
def test_a_text_is_tokenized_again_to_the_same_ids(kind, tmp_path):
    folder = of_words(kind, tmp_path / "plain", ["the", "dog", "saw"], letters="malwiuzr().")
    grow_tokenizer(TokenizerTokens.open(folder), ["mwalimu", "mzuri"], tmp_path / "grown")
    tokenizer = open_tokenizer(tmp_path / "grown")
    if kind == "bytes":  # the small tokenizer has no decoder, which those of real models have
        tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    decode = text_decoder(tokenizer)
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer(decode(ids), add_special_tokens=False)["input_ids"] == ids
        assert decode(ids).split() == text.split()
    assert decode([]) == ""
