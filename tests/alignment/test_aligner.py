"""Links of blocks of pairs against evaluation's, whatever the batches."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from isoglot.alignment import aligner as module
from isoglot.alignment.align import split_words
from isoglot.alignment.aligner import WordAligner
from isoglot.alignment.config import AlignConfig
from isoglot.alignment.word_tokens import WordTokens, places_in
from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluation.loading import load_for_scoring
from isoglot.evaluation.settings import Aligner
from isoglot.evaluation.tokenize_texts import tokenize_words
from isoglot.evaluation.word_alignment import align_words
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.tasks.examples import AlignedPair
from tests.alignment.conftest import PAIRS

WORDS = [split_words(pair) for pair in PAIRS]


def make(model, config, languages=None):
    encoder, tokenizer = model
    return WordAligner(encoder, tokenizer, config, languages=languages)


def expected(model, config, layer, languages=None):
    examples = [
        AlignedPair(first=tuple(a), second=tuple(b), sure=frozenset(), possible=frozenset())
        for a, b in WORDS
    ]
    encoder, tokenizer = model
    found = align_words(encoder, tokenizer, examples, config.features, languages=languages)
    return [sorted(links) for links in found[layer]]


@pytest.mark.parametrize("aligner", get_args(Aligner))
@pytest.mark.parametrize("together", [None, True, False])
def test_against_evaluation(model, aligner, together, monkeypatch):
    config = AlignConfig(aligner=aligner, encode_jointly=together, softmax_threshold=0.05)
    one = make(model, config)
    assert one.layer == 2
    wanted = expected(model, config, 2)
    assert one.links(one.prepare(WORDS)) == wanted
    assert sum(map(bool, wanted)) >= 5
    # batches of one sequence and of one pair
    monkeypatch.setattr(module, "cpu_batch_tokens", lambda: 1)
    monkeypatch.setitem(module._BATCH_NUMBERS, "cpu", 1)
    small = make(model, config)
    assert small.links(small.prepare(WORDS)) == wanted


def test_every_layer(model):
    for layer in range(4):
        config = AlignConfig(aligner="argmax", layer=layer)
        one = make(model, config)
        assert one.links(one.prepare(WORDS)) == expected(model, config, layer)
    with pytest.raises(IsoglotError, match="--layer 4: the model has layers 0 to 3"):
        make(model, AlignConfig(layer=4))


def test_the_default_layer_is_that_of_simalign():
    assert [AlignConfig().chosen_layer(number) for number in (1, 2, 6, 12, 24)] == [1, 1, 4, 8, 16]


def test_nothing_to_align(model):
    one = make(model, AlignConfig())
    assert one.links(one.prepare([([], []), (["a"], [])])) == [[], []]
    assert one.links(one.prepare([])) == []


def test_long_sentences_are_cut_and_counted(model):
    long = (["fox"] * 200, ["dog"] * 10)
    one = make(model, AlignConfig(aligner="argmax"))
    block = one.prepare([long, (["fox"], ["dog"])])
    assert block.num_cut == 1
    links = one.links(block)
    assert links[0]
    # 64 positions less [CLS] and [SEP]
    assert max(i for i, _ in links[0]) < 62


def test_states_that_are_not_finite(model, monkeypatch):
    one = make(model, AlignConfig())
    whole = one._states

    class Broken:
        device = whole.device

        def __call__(self, rows):
            return whole(rows) * float("nan")

    monkeypatch.setattr(one, "_states", Broken())
    with pytest.raises(ModelError, match="not finite"):
        one.links(one.prepare(WORDS))


def test_words_are_tokenized_once_and_as_in_evaluation(model, monkeypatch):
    tokenizer = model[1]
    tokens = WordTokens(tokenizer, 62)
    sentences = [side for pair in WORDS for side in pair]
    found = tokens.encode(sentences)
    starts = np.cumsum(found.lengths) - found.lengths
    for number, words in enumerate(sentences):
        own = slice(starts[number], starts[number] + found.lengths[number])
        of_words = tokenize_words(tokenizer, words)
        assert found.ids[own].tolist() == [t for ids in of_words for t in ids]
        assert found.words[own].tolist() == [n for n, ids in enumerate(of_words) for _ in ids]
    monkeypatch.setitem(WordTokens._learn.__globals__, "tokenize_words", None)
    again = tokens.encode(sentences)  # all words are known
    np.testing.assert_array_equal(again.ids, found.ids)


def test_remembered_words_are_bounded(model, monkeypatch):
    monkeypatch.setitem(WordTokens._learn.__globals__, "_MAX_WORDS", 3)
    tokens = WordTokens(model[1], 62)
    for words in (["fox", "dog"], ["the", "lazy"], ["fox", "brown", "dog", "quick"]):
        assert tokens.encode([words]).lengths[0] >= len(words)
        assert len(tokens._ids) <= 4


def test_places_in_runs():
    assert places_in(np.array([3, 0, 2])).tolist() == [0, 1, 2, 0, 1]


def test_language_embeddings(corpus):
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=3, hidden_size=32, num_heads=2, language_embeddings="all"
    )
    encoder = Encoder.build(settings, corpus.vocabulary, languages=("aa", "bb")).eval()
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    model = encoder, AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    for joint in (True, False):
        config = AlignConfig(aligner="argmax", layer=2, encode_jointly=joint)
        found = {}
        for languages in (("aa", "bb"), ("bb", "aa")):
            one = make(model, config, languages)
            found[languages] = one.links(one.prepare(WORDS))
            assert found[languages] == expected(model, config, 2, languages)
        assert found["aa", "bb"] != found["bb", "aa"]


@pytest.mark.gpu
@pytest.mark.parametrize("aligner", get_args(Aligner))
def test_the_same_links_on_a_gpu(folder, model, aligner):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    encoder, tokenizer = load_for_scoring(folder)
    assert next(encoder.parameters()).is_cuda
    config = AlignConfig(aligner=aligner, softmax_threshold=0.05)
    on_gpu, on_cpu = make((encoder, tokenizer), config), make(model, config)
    assert on_gpu.links(on_gpu.prepare(WORDS)) == on_cpu.links(on_cpu.prepare(WORDS))
