from __future__ import annotations

import random
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, XLMRobertaConfig

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.sentencepiece import (
    MODEL_FILE,
    SentencePieceEncoder,
    gives_same_ids,
)
from isoglot.corpus.tokenization.vocabulary import (
    derive_vocabulary,
    load_vocabulary,
    open_tokenizer,
    save_vocabulary,
    tokenizer_fingerprint,
)
from isoglot.errors import CorpusError
from tests.corpus.sentences import SENTENCES, lines


def vocabulary_of(folder):
    return derive_vocabulary(open_tokenizer(folder), folder)


def fingerprint(folder):
    tokenizer = open_tokenizer(folder)
    return tokenizer_fingerprint(tokenizer, derive_vocabulary(tokenizer, folder))


def rows(encoder, texts):
    ids, lengths = encoder.encode(texts)
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe")
    text = [line for language in SENTENCES for line in lines(language, 60)]
    train_tokenizer(
        text, TokenizerConfig(vocab_size=1200, model="bpe", byte_fallback=False), folder
    )
    return folder


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_the_fast_tokenizer_gives_the_ids_of_sentencepiece(tokenizer, bpe, model, language):
    folder = tokenizer if model == "unigram" else bpe
    texts = [normalize_text(line) for line in [SENTENCES[language], *lines(language, 100, seed=7)]]
    expected = rows(SentencePieceEncoder(folder), texts)
    fast = AutoTokenizer.from_pretrained(folder)
    assert fast.is_fast
    assert fast(texts, add_special_tokens=False)["input_ids"] == expected
    assert rows(HFEncoder(folder), texts) == expected


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_the_ids_agree_where_segmentations_tie(tmp_path, model):
    rng = random.Random(5)

    def word():
        return "".join(rng.choices("abc", weights=[6, 3, 1], k=rng.randint(1, 12)))

    texts = [" ".join(word() for _ in range(8)) for _ in range(4000)]
    train_tokenizer(texts[:800], TokenizerConfig(vocab_size=700, model=model), tmp_path)
    assert rows(HFEncoder(tmp_path), texts) == rows(SentencePieceEncoder(tmp_path), texts)


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_sentencepiece_encodes_for_a_folder_only_if_the_ids_are_its_own(
    tokenizer, bpe, tmp_path, model
):
    folder = tmp_path / "taken"
    shutil.copytree(tokenizer if model == "unigram" else bpe, folder)
    assert gives_same_ids(folder, open_tokenizer(folder), "NFC")
    # text of another form the tokenizer would change, and SentencePiece would not
    assert not gives_same_ids(folder, open_tokenizer(folder), "NFKC")
    more = open_tokenizer(folder)
    more.add_tokens(["harbour"])
    assert not gives_same_ids(folder, more, "NFC")
    (folder / MODEL_FILE).write_bytes(
        (tokenizer if model == "bpe" else bpe).joinpath(MODEL_FILE).read_bytes()
    )
    assert not gives_same_ids(folder, open_tokenizer(folder), "NFC")
    (folder / MODEL_FILE).write_bytes(b"no model")
    assert not gives_same_ids(folder, open_tokenizer(folder), "NFC")
    (folder / MODEL_FILE).unlink()
    assert not gives_same_ids(folder, open_tokenizer(folder), "NFC")


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_nothing_is_lost_in_any_text(tokenizer, text):
    text = normalize_text(text)
    (ids,) = rows(SentencePieceEncoder(tokenizer), [text])
    assert rows(HFEncoder(tokenizer), [text]) == [ids]
    assert Tokenizer.from_file(str(tokenizer / "tokenizer.json")).decode(ids) == text


def test_the_conventions_of_xlm_r(tokenizer):
    fast = AutoTokenizer.from_pretrained(tokenizer)
    assert fast.convert_ids_to_tokens([0, 1, 2, 3]) == ["<s>", "<pad>", "</s>", "<unk>"]
    assert fast.mask_token_id == len(fast) - 1
    a, b = (fast(text, add_special_tokens=False)["input_ids"] for text in ("Regen", "дождь"))
    assert fast("Regen")["input_ids"] == [0, *a, 2]
    assert fast("Regen", "дождь")["input_ids"] == [0, *a, 2, 2, *b, 2]
    assert fast("Regen <mask>")["input_ids"] == [0, *a, fast.mask_token_id, 2]


def test_raw_text_is_tokenized_as_its_cleaned_form(tokenizer):
    fast = AutoTokenizer.from_pretrained(tokenizer)
    raw_text = "\ufeff  u\u0308ber\u200b \t die\u00a0Bru\u0308cke▁hier "
    assert fast(raw_text)["input_ids"] == fast(normalize_text(raw_text))["input_ids"]


def test_spelled_special_tokens_are_text(tokenizer):
    special = set(vocabulary_of(tokenizer).special)
    texts = ["a <mask> b", "<s>", "</s> <pad> <unk>", "x<0x41>y"]
    assert rows(SentencePieceEncoder(tokenizer), texts) == rows(HFEncoder(tokenizer), texts)
    for ids in rows(SentencePieceEncoder(tokenizer), texts):
        assert not special & set(ids)


def test_it_stays_the_same_beside_an_xlm_r_model(tokenizer, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tokenizer, folder)
    XLMRobertaConfig(vocab_size=1200).save_pretrained(folder)
    assert fingerprint(folder) == fingerprint(tokenizer)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "again")
    assert fingerprint(tmp_path / "again") == fingerprint(tokenizer)


def test_training_is_deterministic_and_the_fingerprint_sees_a_change(tmp_path):
    text = lines("en", 80)
    for name, sentences in {"a": text, "b": text, "c": text[:70]}.items():
        train_tokenizer(sentences, TokenizerConfig(vocab_size=350), tmp_path / name)
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "c")


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_an_impossible_size_is_told(tmp_path, model):
    with pytest.raises(CorpusError, match=r"tokenizer\.vocab_size.*20\b"):
        train_tokenizer(lines("en", 80), TokenizerConfig(vocab_size=20, model=model), tmp_path)


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_with_little_text_there_are_fewer_pieces_than_asked_for(tmp_path, model):
    train_tokenizer(lines("en", 20), TokenizerConfig(vocab_size=50_000, model=model), tmp_path)
    assert 256 + 5 < vocabulary_of(tmp_path).size < 2000


def test_padding_of_an_earlier_call_is_not_part_of_the_fingerprint(tokenizer, tmp_path):
    fast = AutoTokenizer.from_pretrained(tokenizer)
    fast(["a", "b c d"], padding=True, truncation=True, max_length=4)
    fast.save_pretrained(tmp_path)
    assert fingerprint(tmp_path) == fingerprint(tokenizer)


def test_vocabulary_of_sentencepiece(tokenizer, tmp_path):
    vocabulary = vocabulary_of(tokenizer)
    fast = AutoTokenizer.from_pretrained(tokenizer)
    assert (vocabulary.cls, vocabulary.sep, vocabulary.pad) == (0, 2, 1)
    assert vocabulary.size == len(fast) == len(vocabulary.word_starts)
    assert vocabulary.special == (0, 1, 2, 3, vocabulary.mask)
    ids = fast("die Netze flickt", add_special_tokens=False)["input_ids"]
    assert vocabulary.word_starts[ids].sum() == 3
    # Chinese has no spaces: a piece is a word there
    chinese = fast("渔夫在修补", add_special_tokens=False)["input_ids"]
    assert vocabulary.word_starts[chinese].all()
    save_vocabulary(tmp_path, vocabulary)
    loaded = load_vocabulary(tmp_path)
    assert loaded.word_starts.tolist() == vocabulary.word_starts.tolist()
    for name in ("size", "cls", "sep", "pad", "mask", "special"):
        assert getattr(loaded, name) == getattr(vocabulary, name)


def wordpiece(folder, **names):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece({}, unk_token=special[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(lines("en", 50), trainer)
    default = {f"{name.strip('[]').lower()}_token": name for name in special}
    kept = {key: value for key, value in {**default, **names}.items() if value}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **kept).save_pretrained(folder)
    return folder


def byte_level(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(lines("en", 50), trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return folder


def test_vocabulary_of_wordpiece(tmp_path):
    vocabulary = vocabulary_of(wordpiece(tmp_path))
    pieces = AutoTokenizer.from_pretrained(tmp_path).get_vocab()
    assert any(piece.startswith("##") for piece in pieces)
    for piece, index in pieces.items():
        assert vocabulary.word_starts[index] == (not piece.startswith("##"))
    assert (vocabulary.cls, vocabulary.sep) == (pieces["[CLS]"], pieces["[SEP]"])


def test_vocabulary_of_byte_level_bpe_falls_back_to_bos_and_eos(tmp_path):
    vocabulary = vocabulary_of(byte_level(tmp_path))
    pieces = AutoTokenizer.from_pretrained(tmp_path).get_vocab()
    assert (vocabulary.cls, vocabulary.sep) == (pieces["<s>"], pieces["</s>"])
    assert pieces["<unk>"] in vocabulary.special
    plain = {p: i for p, i in pieces.items() if i not in vocabulary.special}
    assert any(vocabulary.word_starts[index] for index in plain.values())
    for piece, index in plain.items():
        assert vocabulary.word_starts[index] == piece.startswith("Ġ")


@pytest.mark.parametrize("name", ["mask", "pad"])
def test_a_missing_special_token_is_named_with_the_fix(tmp_path, name):
    folder = wordpiece(tmp_path, **{f"{name}_token": ""})
    with pytest.raises(CorpusError, match=rf"has no {name} token.*'{name}_token'"):
        vocabulary_of(folder)


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(CorpusError, match=r"holds no tokenizer .* name the folder that has them"):
        vocabulary_of(tmp_path)
    with pytest.raises(CorpusError, match="no such folder"):
        vocabulary_of(tmp_path / "nowhere")


def test_a_model_without_its_tokenizer(tmp_path, corpus):
    """Transformers makes up a tokenizer with no vocabulary there."""
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    with pytest.raises(CorpusError, match=r"holds no tokenizer \(.*tokenizer\.json.*Copy"):
        corpus.check_tokenizer(tmp_path)
