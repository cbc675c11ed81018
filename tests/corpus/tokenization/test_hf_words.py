"""Tokenizers that are encoded by words, against the tokenizers library on whole texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from isoglot.corpus.tokenization.encoders import fastest_encoder, open_encoder
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.hf_words import _PATTERNS, HFWordEncoder, splits_at_spaces
from tests.corpus.sentences import lines
from tests.corpus.tokenization.test_unigram import JOINING, TEXTS, agree

TRAINING = [*lines("en", 60), *lines("de", 60), *lines("zh", 60), "it's we'll 12 345 e\u0301 ﬁ ½"]
LLAMA, QWEN = sorted(pattern for pattern in _PATTERNS if "(?i:" in pattern)


def trained(kind):
    """A tokenizer with the steps of a published one, and the pieces of a few sentences."""
    if kind.startswith("bert"):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=kind == "bert uncased")
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(
            vocab_size=300, special_tokens=["[UNK]", "[MASK]"], show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.BPE())
        byte_level = pre_tokenizers.ByteLevel
        tokenizer.pre_tokenizer = {
            "gpt2": byte_level(add_prefix_space=False),
            "prefix": byte_level(add_prefix_space=True),
            "modern": byte_level(add_prefix_space=False),
            "llama": pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(LLAMA), "isolated"),
                    byte_level(add_prefix_space=False, use_regex=False),
                ]
            ),
            "qwen": pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(QWEN), "isolated"),
                    byte_level(add_prefix_space=False, use_regex=False),
                ]
            ),
        }[kind]
        if kind != "gpt2":
            tokenizer.normalizer = normalizers.NFC()
        trainer = trainers.BpeTrainer(
            vocab_size=500,
            special_tokens=["<s>", "<mask>"],
            initial_alphabet=byte_level.alphabet(),
            show_progress=False,
        )
    tokenizer.train_from_iterator(TRAINING, trainer)
    if kind in ("modern", "bert"):
        tokenizer.add_tokens([AddedToken("it's", rstrip=True), "中国"])
    if kind == "modern":  # cannot be in a text with single spaces
        tokenizer.add_tokens(["  ", "   "])
    return tokenizer


KINDS = ("bert", "bert uncased", "gpt2", "prefix", "modern", "llama", "qwen")


@pytest.fixture(scope="module", params=KINDS)
def encoders(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    trained(request.param).save(str(folder / "tokenizer.json"))
    library = HFEncoder(folder)
    assert splits_at_spaces(library.sections())
    wanted = {"bert": "wordpiece", "llama": "words", "qwen": "words"}
    name = fastest_encoder(library.sections())
    assert name == wanted.get(request.param.split()[0], "byte_bpe")
    encoder = open_encoder(name, folder, request.param)
    assert isinstance(encoder, HFWordEncoder)
    encoder._agrees = True
    return encoder, library


def test_the_ids_of_the_library(encoders):
    texts = [*TRAINING, *TEXTS, "it's it's 中国 中国it's", "İstanbul ΟΔΟΣ ΣΑΣ", "[MASK] <s>"]
    agree(encoders, texts)
    for text in texts:
        agree(encoders, [text])
    agree(encoders, [])


PARTS = st.sampled_from(
    [
        *"aabbtsre    '’.,-!?1290éßΣİ",
        *("'s", "it's", "'LL", "中", "国", "中国", "カ", "ก", "\u0301", "ी", "क", "´", "ﬁ", "½"),
        *("🎉", "\u00a0", "\u3000", "\u0085", "\x1c", "\x00", "\ufffd", "\n", "\r", *JOINING),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(PARTS, max_size=14).map("".join) | st.text(max_size=6), max_size=5))
@example(["a\n b", "\nb"])
@example(["\u0301 a \u0301", "a \u200d \u200d b", "it's  b it's b"])
def test_the_ids_of_any_texts(encoders, texts):
    agree(encoders, texts)


def test_the_ids_of_long_words(encoders):
    agree(encoders, ["a" * 99, "b" * 101, "ab" * 300, "中" * 600, "ab12" * 120 + "'ll!" * 9])


def test_only_few_words_are_left_to_the_library(encoders, monkeypatch):
    """Words of ordinary text are encoded by compiled code, but for rules without it."""
    encoder, _ = encoders
    asked = []
    whole = HFWordEncoder.encode_words

    def noted(self, new):
        asked.extend(new.texts())
        return whole(self, new)

    monkeypatch.setattr(HFWordEncoder, "encode_words", noted)
    encoder.encode([f"some new words 人民 {number} and others, we'll go!" for number in (7, 77)])
    assert bool(asked) == (type(encoder) is HFWordEncoder)


def test_other_tokenizers_are_left_to_the_library(tmp_path):
    changes = {
        "no pre-tokenizer": lambda one: setattr(one, "pre_tokenizer", pre_tokenizers.Sequence([])),
        "no rule": lambda one: setattr(
            one, "pre_tokenizer", pre_tokenizers.ByteLevel(use_regex=False)
        ),
        "another rule": lambda one: setattr(
            one, "pre_tokenizer", pre_tokenizers.Split(Regex(r".{3}"), "isolated")
        ),
        "spaces": lambda one: setattr(one, "normalizer", normalizers.Replace(" ", "_")),
        "accents": lambda one: setattr(one, "normalizer", normalizers.StripAccents()),
        "added": lambda one: one.add_tokens([AddedToken("a b")]),
    }
    for name, change in changes.items():
        tokenizer = trained("gpt2")
        change(tokenizer)
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        assert not splits_at_spaces(HFEncoder(tmp_path).sections()), name
    bert = trained("bert")
    bert.add_tokens(["  "])  # found where normalization removes the word between two spaces
    bert.save(str(tmp_path / "tokenizer.json"))
    assert not splits_at_spaces(HFEncoder(tmp_path).sections())
