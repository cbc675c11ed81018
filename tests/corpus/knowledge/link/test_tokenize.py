from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from isoglot.corpus.knowledge.link.tokenize import SpanTokenizer, span_status
from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from tests.corpus.sentences import lines

TEXTS = [line for language in ("de", "en", "zh") for line in lines(language, 60)]


def _byte_level(folder) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(str(folder))


def _pieces(model: str):
    def train(folder) -> None:
        train_tokenizer(TEXTS, TokenizerConfig(vocab_size=600, model=model), folder)  # type: ignore[arg-type]

    return train


@pytest.fixture(scope="module", params=["unigram", "bpe", "byte-level"])
def encoder(request, tmp_path_factory) -> SpanTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer") / request.param
    folder.mkdir()
    (_byte_level if request.param == "byte-level" else _pieces(request.param))(folder)
    return SpanTokenizer(folder)


def tokens_of(
    encoder: SpanTokenizer, text: str, start: int, end: int
) -> tuple[list[int], int, int]:
    """Ids of a text between two others, and the tokens of one of its spans."""
    encoded = encoder.tokenize(["Before it.", text, "Behind it."])
    one = np.array([1])
    first, last = encoder.spans(encoded, one, np.array([start]), np.array([end]))
    begin = int(encoded.lengths[0])
    ids = encoded.ids[begin : begin + int(encoded.lengths[1])].tolist()
    return ids, int(first[0]), int(last[0])


def decoded(encoder: SpanTokenizer, ids: list[int]) -> str:
    return encoder._tokenizer.decode(ids, skip_special_tokens=False).strip()


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("Paris is nice.", "Paris"),
        ("It is (New York), they say.", "New York"),
        ("東京都は日本の首都。", "東京都は日本の首都。"),
        ("Sie mag den Fluss.", "Fluss"),
        ("ꙮꙮ", "ꙮꙮ"),
        ("ꙮꙮꙃꙮ", "ꙃ"),
    ],
)
def test_the_tokens_of_a_name_spell_it(encoder, text, anchor):
    start = text.index(anchor)
    ids, first, last = tokens_of(encoder, text, start, start + len(anchor))
    assert decoded(encoder, ids[first:last]) == anchor
    assert ids[first] not in encoder._space_marks


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_character_of_a_name_is_outside_of_its_tokens(encoder, data):
    letters = st.text(st.sampled_from("abz東京é ü😀ꙮ"), min_size=1, max_size=12)
    text = data.draw(letters)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    ids, first, last = tokens_of(encoder, text, start, end)
    left = decoded(encoder, ids[:first]) + decoded(encoder, ids[last:])
    # what is left outside can be spelled without the name's characters
    outside = text[:start] + " " + text[end:]
    spelled = left.replace(" ", "").replace("�", "")
    if text[start:end].strip():
        assert first < last
        assert set(spelled) <= set(outside)
        assert len(spelled) <= len(outside.replace(" ", ""))


def test_a_space_has_no_tokens(encoder):
    _, first, last = tokens_of(encoder, "a  b", 2, 2)
    assert first >= last


def test_the_ids_are_those_of_the_corpus(encoder):
    encoded = encoder.tokenize(TEXTS)
    plain = [encoder._tokenizer.encode(t, add_special_tokens=False).ids for t in TEXTS]
    assert encoded.ids.tolist() == [index for ids in plain for index in ids]


def test_nothing_to_encode(encoder):
    none = np.zeros(0, np.int64)
    encoded = encoder.tokenize([])
    assert [part.tolist() for part in encoder.spans(encoded, none, none, none)] == [[], []]
    assert span_status(none, none, none, max_tokens=3).tolist() == []
    one = np.zeros(1, np.int64)
    first, last = encoder.spans(encoder.tokenize([""]), one, one, one)
    assert first[0] >= last[0]


def test_fates_of_spans():
    sentence = np.array([0, 0, 0, 0, 1, 1])
    first = np.array([0, 1, 3, 9, 0, 4])
    last = np.array([2, 3, 4, 9, 5, 6])
    assert span_status(sentence, first, last, max_tokens=4).tolist() == [
        "kept",
        "shared token",
        "kept",
        "no tokens",
        "too long",
        "shared token",
    ]
