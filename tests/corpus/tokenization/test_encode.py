"""How well a tokenizer fits: counts that a slow reference agrees with."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from isoglot.corpus import Corpus
from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.storage.manifest import TokenizerStats
from isoglot.corpus.tokenization.build import TokenizerConfig, byte_token_ids, train_tokenizer
from isoglot.corpus.tokenization.encode import count_statistics, count_words
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from tests.corpus.conftest import config, write_raw
from tests.corpus.pipeline.test_run import add_up, decoded
from tests.corpus.sentences import lines

ALONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"


@given(st.lists(st.text(st.sampled_from("ab é雨のก ")).map(normalize_text), max_size=6))
def test_words_are_counted_as_by_a_regular_expression(texts):
    expected = sum(len(re.findall(rf"[{ALONE}]|[^\s{ALONE}]+", text)) for text in texts)
    assert count_words(texts) == expected


def test_rates(tokenizer):
    vocabulary = AutoTokenizer.from_pretrained(tokenizer).get_vocab()
    spelled = byte_token_ids(vocabulary)
    assert len(spelled) == 256
    texts = ["Rain fell", "Rain ☂"]
    ids, _ = HFEncoder(tokenizer).encode(texts)
    fit = count_statistics(texts, ids, vocabulary["<unk>"], spelled)
    assert (fit.words, fit.tokens, fit.unknown, fit.bytes) == (4, len(ids), 0, 3)
    assert fit.coverage == pytest.approx(1 - 3 / len(ids))
    assert fit.tokens_per_word == pytest.approx(len(ids) / 4)
    assert fit + TokenizerStats() == fit
    empty = count_statistics([], np.zeros(0, np.int32), None, spelled)
    assert (empty, empty.coverage, empty.tokens_per_word) == (TokenizerStats(), 1.0, 0.0)


def test_a_word_level_vocabulary(tmp_path):
    text = ["b a a", "a b c", "d"] * 10
    train_tokenizer(text, TokenizerConfig(model="word", vocab_size=8), tmp_path)
    fast = AutoTokenizer.from_pretrained(tmp_path)
    # of c and d, equally frequent, c comes first, and d has no room
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "▁c", "<mask>"]
    assert fast.convert_ids_to_tokens(list(range(len(fast)))) == pieces
    assert fast(" b  a\td <mask>", add_special_tokens=False)["input_ids"] == [5, 4, 3, 7]
    # spelled in a text of the corpus, a special token is a word that nobody knows
    assert HFEncoder(tmp_path).encode(["a <s> <mask> b"])[0].tolist() == [4, 3, 3, 5]
    assert fast.decode([5, 4]) == "b a"


@pytest.mark.parametrize("model", ["unigram", "bpe", "word"])
def test_the_manifest_tells_how_the_tokenizer_fits(tmp_path, model):
    write_raw(tmp_path / "raw")
    size = 100 if model == "word" else 600
    chosen = config(tokenizer=TokenizerConfig(vocab_size=size, model=model), heldout_share=0.0)
    manifest = prepare(chosen, tmp_path / "corpus", base=tmp_path / "raw")
    add_up(manifest)
    corpus = Corpus.open(tmp_path / "corpus")
    corpus.check_tokenizer(corpus.tokenizer_folder)
    fits = corpus.manifest.tokenizer.statistics
    assert set(fits) == {"de", "en", "zh"}
    assert fits["en"].tokens == sum(
        split.tokens[column]
        for source, language, column in (("wiki", "en", "ids"), ("bible", "en-de", "first"))
        for split in manifest.sources[source].languages[language].values()
    )
    if model == "word":
        assert fits["en"].tokens_per_word == 1.0
        assert fits["en"].unknown_rate > 0
    else:
        assert fits["en"].tokens_per_word > 1.0
        assert fits["en"].unknown_rate == 0


def test_text_is_divided_into_words_before_pieces(tmp_path):
    (tmp_path / "en.txt").write_text("\n".join(lines("en", 80)) + "\nNo, it isn't: (here)!\n")
    (tmp_path / "zh.txt").write_text("\n".join(lines("zh", 80)) + "\n")
    tokenizer = TokenizerConfig(
        vocab_size=500, model="bpe", pretokenize={"*": "moses", "zh": "none"}
    )
    chosen = config(
        sources={"s": SourceConfig(files={"en": ("en.txt",), "zh": ("zh.txt",)})},
        tokenizer=tokenizer,
        heldout_share=0.0,
    )
    first = prepare(chosen, tmp_path / "corpus", base=tmp_path)
    corpus = Corpus.open(tmp_path / "corpus")
    assert decoded(corpus, "s", "en", "train")[-1] == ("No , it isn 't : ( here ) !",)
    assert (corpus.tokenizer_folder / "pretokenize.json").is_file()
    corpus.check_tokenizer(corpus.tokenizer_folder)
    # the same tokenizer taken from its folder divides text the same way
    again = config(
        sources=chosen.sources,
        tokenizer=TokenizerConfig(folder=str(corpus.tokenizer_folder)),
        heldout_share=0.0,
    )
    second = prepare(again, tmp_path / "again", base=tmp_path)
    assert second.fingerprint == first.fingerprint
