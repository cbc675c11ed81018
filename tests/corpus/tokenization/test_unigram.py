"""Unigram tokenizers against the tokenizers library, text by text."""

from __future__ import annotations

import io
import json
import lzma
import math
import shutil
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer, sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, XLMRobertaTokenizer

from isoglot.corpus.tokenization import word_table
from isoglot.corpus.tokenization.hf_tokenizer import HFEncoder
from isoglot.corpus.tokenization.unigram import UnigramEncoder, is_supported

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
PIECES = (
    *("▁", "a", "b", "ab", "▁a", "▁ab", "ba", "aba", "▁b", "bab", "é", "e", "́", "ी", "क", "की"),
    *(
        "中",
        "国",
        "中国",
        "▁中",
        ",",
        ".",
        "...",
        "..",
        "▁...",
        "1",
        "ß",
        "ss",
        "ﬁ",
        "f",
        "i",
        "🎉",
    ),
)
TEXTS = [
    "ab aba abab b a",
    "..... ...... . .......",
    "कीकी की क",
    "中国，中 国中 ab",
    "é é e ́a",
    "ﬁ ß １ … ㈱ ´a b´",
    "xyz qq a xq 🎉🎉 👍🏽 👨‍👩‍👧",
    "  double  spaces ",
    " ",
    "",
    "a\u00a0b a\u3000b a\u200bb",
    "<s> <mask> </s>",
    "▁a ▁ a▁b",
    "a\tb\nc",
]


def characters_map() -> bytes:
    """XLM-R's normalization (nmt_nfkc), as SentencePiece stores it in every model."""
    model = io.BytesIO()
    lines = iter(["some words to train a model on"] * 20)
    SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=30, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    spec = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec
    return bytes(spec.precompiled_charsmap)


def save(folder, *, normalizer=None, byte_fallback=False, pre_tokenizer=None, mask=-3.0):
    """A folder as XLM-R's: pieces with scores that have many ties."""
    pieces = [*SPECIAL, *PIECES]
    if byte_fallback:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    scores = [(piece, 0.0 if piece in SPECIAL else -2.0 - len(piece) % 3) for piece in pieces]
    tokenizer = Tokenizer(
        models.Unigram([*scores, ("<mask>", mask)], unk_id=3, byte_fallback=byte_fallback)
    )
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), SPECIAL, strict=True)),
        mask_token="<mask>",  # noqa: S106
    ).save_pretrained(folder)
    return folder


NORMALIZERS = {
    "xlm-r": lambda: normalizers.Precompiled(characters_map()),
    "spaces": lambda: normalizers.Sequence(
        [normalizers.Precompiled(characters_map()), normalizers.Replace(Regex(" {2,}"), " ")]
    ),
    "none": lambda: None,
}


@pytest.fixture(scope="module", params=[*NORMALIZERS, "bytes"])
def encoders(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    name = "xlm-r" if request.param == "bytes" else request.param
    save(folder, normalizer=NORMALIZERS[name](), byte_fallback=request.param == "bytes")
    assert is_supported(HFEncoder(folder).sections())
    return trusted(folder), HFEncoder(folder)


def trusted(folder):
    """An encoder that does not compare itself with the library."""
    encoder = UnigramEncoder(folder)
    encoder._agrees = True
    return encoder


def agree(encoders, texts):
    (ids, counts), (their_ids, their_counts) = (one.encode(texts) for one in encoders)
    assert counts.tolist() == their_counts.tolist()
    assert ids.tolist() == their_ids.tolist()
    assert ids.dtype == their_ids.dtype
    assert counts.dtype == their_counts.dtype


def test_the_ids_of_the_library(encoders):
    agree(encoders, TEXTS)
    agree(encoders, [])
    for text in TEXTS:
        agree(encoders, [text])


JOINING = ("\u064e", "\u200c", "\u200d", "\u00ad", "\u0e33", "\uff9e", "\u0600", "\u0d4e")
ALPHABET = st.sampled_from(
    [*"aaaabbbb  .,é1xß", "́", "ी", "क", "中", "国", "ﬁ", "…", "🎉", "´", "½", "ل", *JOINING]
)
WORDS = st.text(ALPHABET, max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS | st.text(max_size=6).filter(lambda text: text.isprintable()), max_size=5))
@example(["́a", "a ́"])
@example(["½\u0e33 a\u200d \u200da ²\uff9e a\u0600 b"])
def test_the_ids_of_any_texts(encoders, texts):
    agree(encoders, texts)


def test_a_word_is_encoded_once(tmp_path, monkeypatch):
    encoder = trusted(save(tmp_path))
    seen = []
    whole = UnigramEncoder.encode_words

    def noted(self, new):
        seen.extend(new.texts())
        return whole(self, new)

    monkeypatch.setattr(UnigramEncoder, "encode_words", noted)
    for _ in range(2):
        agree((encoder, HFEncoder(tmp_path)), ["ab aba ab", "aba", "ab  ba"])
    # of a text with two spaces no word but those before them
    assert seen == ["ab", "aba"]


def test_a_full_table_is_emptied(tmp_path, monkeypatch):
    monkeypatch.setattr(word_table, "_POOL", 64)
    monkeypatch.setattr(word_table, "_SLOTS", 16)
    encoders = trusted(save(tmp_path)), HFEncoder(tmp_path)
    for number in range(60):
        agree(encoders, [f"{'ab' * (number % 9)}b {number} a", "ab " * number + "b"])


def test_unknown_characters_are_joined_or_become_bytes(encoders):
    unigram, _ = encoders
    (ids, counts) = unigram.encode(["qqq"])
    assert counts.tolist() == [len(ids)]
    is_bytes = len(ids) > 2
    assert ids.tolist()[1:] == ([ids[1]] * 3 if is_bytes else [3])


def test_other_tokenizers_are_left_to_the_library(tmp_path):
    save(tmp_path / "first", pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first"))
    save(tmp_path / "split", pre_tokenizer=pre_tokenizers.Metaspace(split=False))
    save(tmp_path / "case", normalizer=normalizers.Lowercase())
    for name in ("first", "split", "case"):
        assert not is_supported(HFEncoder(tmp_path / name).sections())
    bpe = Tokenizer(models.BPE({"<unk>": 0, "a": 1}, [], unk_token="<unk>"))  # noqa: S106
    PreTrainedTokenizerFast(tokenizer_object=bpe).save_pretrained(tmp_path / "bpe")
    assert not is_supported(HFEncoder(tmp_path / "bpe").sections())


def test_an_added_token_is_left_to_the_library(tmp_path):
    folder = save(tmp_path / "added")
    assert is_supported(HFEncoder(folder).sections())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken("ab ab")])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert not is_supported(HFEncoder(folder).sections())


def test_an_encoder_that_differs_leaves_all_to_the_library(tmp_path, monkeypatch):
    folder = save(tmp_path / "good")
    whole = UnigramEncoder.encode_words

    def broken(self, words):
        ids, counts, left = whole(self, words)
        return ids + 1, counts, left

    monkeypatch.setattr(UnigramEncoder, "encode_words", broken)
    agree((UnigramEncoder(folder), HFEncoder(folder)), TEXTS)
    with pytest.raises(AssertionError):
        agree((trusted(folder), HFEncoder(folder)), TEXTS)


def test_a_corpus_is_the_same_with_either_encoder(tmp_path, monkeypatch):
    """Shards of a corpus that takes its tokenizer from such a folder."""
    from isoglot import prepare
    from isoglot.corpus import Corpus

    folder = save(tmp_path / "tokenizer", normalizer=NORMALIZERS["xlm-r"]())
    text = [f"{'ab' * (number % 7)} aba {number % 10} 中国，é." for number in range(300)]
    (tmp_path / "aa.txt").write_text("\n".join(text), encoding="utf-8")
    (tmp_path / "prepare.yaml").write_text(
        json.dumps(
            {
                "sources": {"t": {"kind": "text", "format": "lines", "files": {"aa": ["aa.txt"]}}},
                "tokenizer": {"folder": str(folder)},
            }
        )
    )
    used = []
    whole = UnigramEncoder.encode

    def counted(self, texts):
        used.append(len(texts))
        return whole(self, texts)

    monkeypatch.setattr(UnigramEncoder, "encode", counted)
    fingerprints = []
    for works in (True, False):
        monkeypatch.setattr(
            "isoglot.corpus.tokenization.unigram.is_supported", lambda *_, is_on=works: is_on
        )
        out = tmp_path / f"corpus-{works}"
        prepare(tmp_path / "prepare.yaml", out, workers=1)
        fingerprints.append(Corpus.open(out).fingerprint)
        assert bool(used) == works
        used.clear()
        shutil.rmtree(out)
    assert fingerprints[0] == fingerprints[1]


@pytest.mark.parametrize("is_generic", [True, False])
def test_scores_are_those_of_transformers(tmp_path, is_generic):
    """The tokenizers library rounds scores as it reads them, not all classes do."""
    pieces = [(piece, 0.0) for piece in SPECIAL]
    pieces += [(chr(0x4E00 + number), -math.log(number + 2e5)) for number in range(200)]
    plain = Tokenizer(models.Unigram(pieces, unk_id=3))
    if is_generic:
        PreTrainedTokenizerFast(tokenizer_object=plain).save_pretrained(tmp_path)
    else:
        XLMRobertaTokenizer(vocab=pieces).save_pretrained(tmp_path)
    plain.save(str(tmp_path / "tokenizer.json"))
    backend = AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    expected = json.loads(backend.to_str())["model"]["vocab"]
    assert HFEncoder(tmp_path).sections()["model"]["vocab"] == expected
    file = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert (file != expected) == is_generic


@pytest.mark.slow
def test_real_text_and_xlm_r_s_pieces(data_folder, tmp_path):
    """XLM-R's 250,000 pieces, with scores by rank, on test sentences of many languages."""
    with lzma.open(data_folder / "tokenizer/xlmr-fairseq-dict.txt.xz", "rt", encoding="utf-8") as f:
        pieces = list(dict.fromkeys(line.rsplit(" ", 1)[0] for line in f))
    scores = [(piece, -math.log(rank + 20) - 2) for rank, piece in enumerate(pieces)]
    first = [(piece, 0.0) for piece in SPECIAL]
    tokenizer = Tokenizer(models.Unigram([*first, *scores], unk_id=3))
    tokenizer.normalizer = normalizers.Precompiled(characters_map())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    encoders = trusted(tmp_path), HFEncoder(tmp_path)
    files = sorted((data_folder / "parallel/bible").glob("*.tsv.xz"))[:12]
    assert files
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            agree(encoders, [line.rstrip("\n").split("\t")[-1] for line in islice(lines, 400)])
