"""Every rule of matching, token by token, between hand-made vocabularies."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from isoglot.models.transplant import Dictionary, Tokens, match
from isoglot.models.transplant.surface import Surface, Written, folded, surface
from tests.models.transplant.large import large_match
from tests.models.transplant.made import (
    KINDS,
    ROLES,
    bpe,
    byte_letters,
    of_words,
    save,
    unigram,
    wordpiece,
)

BYTES = Written("bytes", "Ġ", byte_pieces=False)


def found(source, target, dictionary=None, **settings):
    """Each target token with the kind of its match and the source tokens it is made from."""
    matches = match(source, target, dictionary, **settings)
    names = dict(source.by_id)
    return {
        token: (matches.kinds[index], [names[other] for other in matches.sources_of(index)])
        for index, token in target.by_id
    }


def weights(source, target, token, dictionary=None, **settings):
    matches = match(source, target, dictionary, **settings)
    index, names = target.ids[token], dict(source.by_id)
    span = slice(matches.offsets[index], matches.offsets[index + 1])
    return {
        names[other]: pytest.approx(weight)
        for other, weight in zip(matches.sources[span], matches.weights[span], strict=True)
    }


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    """Byte-level BPE, cased, as RoBERTa's."""
    words = ["Ġhouse", "Ġbig", "Ġcafé", "Ġice", "Ġcream", "Ġdog", "ing", "Ġ2", "Paris"]
    marked = [
        byte_letters(word) if word[0] != "Ġ" else "Ġ" + byte_letters(word[1:]) for word in words
    ]
    return Tokens.open(bpe(tmp_path_factory.mktemp("en"), marked, byte_level=True))


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    """SentencePiece with bytes, as XLM-R's."""
    pieces = ["▁house", "▁House", "house", "▁café", "▁２", "ing", "▁ing", "▁Paris", "▁", "<0xC3>"]
    pieces += ["<0x41>", "▁nyumba", "▁Nyumba", "nyumba", "▁barafu", "家", "▁xyz", "▁ﬁsh", "<lang>"]
    folder = tmp_path_factory.mktemp("xx")
    return Tokens.open(unigram(folder, pieces, byte_fallback=True))


DICTIONARY = Dictionary(
    {
        folded(word): translations
        for word, translations in {
            "nyumba": ["house"],
            "barafu": ["ice cream", "big"],
            "家": ["big", "house"],
            "xyz": ["日本"],
        }.items()
    }
)


def test_byte_level_bpe_to_sentencepiece(english, multilingual):
    said = found(english, multilingual, DICTIONARY)
    assert said["<s>"] == ("special", ["<s>"])
    assert said["<mask>"] == ("special", ["<mask>"])
    assert said["▁house"] == ("marker", ["Ġhouse"])
    assert said["▁House"] == ("case", ["Ġhouse"])
    assert said["house"] == ("boundary", ["Ġhouse"])
    assert said["▁café"] == ("marker", ["ĠcafÃ©"])
    assert said["▁２"] == ("unicode", ["Ġ2"])
    assert said["ing"] == ("exact", ["ing"])
    assert said["▁ing"] == ("boundary", ["ing"])
    assert said["▁Paris"] == ("boundary", ["Paris"])
    assert said["▁"] == ("marker", ["Ġ"])
    assert said["<0xC3>"] == ("marker", ["Ã"])
    assert said["<0x41>"] == ("marker", ["A"])
    assert said["▁nyumba"] == ("dictionary", ["Ġhouse"])
    assert said["▁Nyumba"] == ("dictionary", ["Ġhouse"])
    assert said["nyumba"] == ("random", [])  # inside a word it is no word
    assert said["家"] == ("dictionary", ["Ġbig", "Ġhouse"])  # Chinese marks no words
    assert said["▁barafu"][0] == "dictionary"
    assert said["<lang>"] == ("random", [])


def test_a_translation_of_several_words_and_several_translations(english, multilingual):
    mean = weights(english, multilingual, "▁barafu", DICTIONARY)
    assert mean == {"Ġice": 0.25, "Ġcream": 0.25, "Ġbig": 0.5}
    first = weights(english, multilingual, "▁barafu", DICTIONARY, translations="first")
    assert first == {"Ġice": 0.5, "Ġcream": 0.5}


def test_the_fallbacks(english, multilingual):
    assert found(english, multilingual)["▁nyumba"] == ("random", [])
    assert found(english, multilingual, fallback="zero")["▁nyumba"] == ("zero", [])
    kind, pieces = found(english, multilingual, fallback="pieces")["▁nyumba"]
    assert kind == "pieces"
    assert pieces == ["Ġ", "n", "y", "u", "m", "b", "a"]


def test_pieces_unknown_to_the_source_are_drawn(tmp_path):
    source = Tokens.open(wordpiece(tmp_path / "source", ["a", "##b"]))
    target = Tokens.open(wordpiece(tmp_path / "target", ["ab", "abb", "az", "##az"]))
    said = found(source, target, fallback="pieces")
    assert said["ab"] == ("pieces", ["a", "##b"])
    assert weights(source, target, "abb", fallback="pieces") == {"a": 1 / 3, "##b": 2 / 3}
    assert said["az"] == said["##az"] == ("random", [])


def test_a_mark_alone_is_no_part_of_a_piece_inside_a_word(tmp_path):
    source = Tokens.open(unigram(tmp_path / "source", ["▁", "a", "b"]))
    target = Tokens.open(unigram(tmp_path / "target", ["▁ab", "ab"]))
    said = found(source, target, fallback="pieces")
    assert said["▁ab"] == ("pieces", ["▁", "a", "b"])
    assert said["ab"] == ("pieces", ["a", "b"])


def test_wordpiece_to_sentencepiece(tmp_path):
    source = Tokens.open(wordpiece(tmp_path / "source", ["house", "##ing", ",", "猫", "##s", "s"]))
    pieces = ["▁house", "house", "ing", "▁ing", ",", "猫", "s", "▁s", "▁HOUSE"]
    target = Tokens.open(unigram(tmp_path / "target", pieces))
    said = found(source, target)
    assert said["<s>"] == ("special", ["[CLS]"])
    assert said["</s>"] == ("special", ["[SEP]"])
    assert said["<pad>"] == ("special", ["[PAD]"])
    assert said["<unk>"] == ("special", ["[UNK]"])
    assert said["▁house"] == ("marker", ["house"])
    assert said["house"] == ("boundary", ["house"])  # the same letters, but inside a word
    assert said["ing"] == ("marker", ["##ing"])
    assert said["▁ing"] == ("boundary", ["##ing"])
    assert said[","] == ("boundary", [","])
    assert said["猫"] == ("boundary", ["猫"])
    assert said["s"] == ("marker", ["##s"])
    assert said["▁s"] == ("marker", ["s"])
    assert said["▁HOUSE"] == ("case", ["house"])


@pytest.mark.parametrize("into", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_whole_words_match_between_all_kinds(tmp_path, kind, into):
    words = ["house", "Straße", "день", "नमस्ते"]
    source = Tokens.open(of_words(kind, tmp_path / "source", words))
    target = Tokens.open(of_words(into, tmp_path / "target", words))
    said = match(source, target)
    for word in words:
        (own,) = (target.ids[t] for t in target.ids if target.surface(t) == Surface(word, True))
        (other,) = said.sources_of(own)
        assert source.surface(dict(source.by_id)[other]) == Surface(word, True)
        same = {kind, into} <= {"unigram", "sentencepiece-bpe"} or kind == into
        assert said.kinds[own] == ("exact" if same else "marker")


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_of_one_tokenizer_matches_itself(tmp_path, kind):
    own = Tokens.open(of_words(kind, tmp_path, ["house", "House", "ﬁsh", "fish"], "aA,"))
    said = match(own, own)
    assert [said.sources_of(index) for index in range(own.vocabulary.size)] == [
        [index] for index in range(own.vocabulary.size)
    ]
    assert set(said.kinds) == {"special", "exact"}


@given(st.text(max_size=12))
@example(" ")
@example("  x")
@settings(max_examples=60)
def test_bytes_and_marks_are_undone(text):
    assert surface(f"Ġ{byte_letters(text)}", BYTES) == Surface(text, starts=True)
    # a space at the very start is the mark itself
    assert surface(byte_letters(text), BYTES) == Surface(text.removeprefix(" "), text[:1] == " ")


def test_time_of_a_large_vocabulary(tmp_path):
    """A tenth of 250,000 tokens and 100,000 entries, in a tenth of a minute of one core."""
    matches, seconds = large_match(tmp_path, tokens=25_000, entries=10_000)
    assert seconds < 6
    assert set(matches.kinds) == {"special", "marker", "dictionary", "pieces"}


def test_words_that_are_marked_at_their_ends(tmp_path):
    """BPE of XLM's kind, which HerBERT has too."""
    vocabulary = {
        token: index
        for index, token in enumerate([*ROLES["roberta"], "house</w>", "hou", "se</w>", "a</w>"])
    }
    tokenizer = Tokenizer(
        models.BPE(vocabulary, [], unk_token="<unk>", end_of_word_suffix="</w>")  # noqa: S106
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    source = Tokens.open(save(tokenizer, tmp_path / "ends"))
    assert source.surface("house</w>") == Surface("house", starts=True)
    assert source.surface("hou") == Surface("hou", starts=False)
    target = Tokens.open(unigram(tmp_path / "sp", ["▁house", "hou", "se", "▁a", "▁b"]))
    of = found(source, target)
    assert of["▁house"] == ("marker", ["house</w>"])
    assert of["hou"] == ("exact", ["hou"])
    assert of["se"] == ("boundary", ["se</w>"])
    assert of["▁b"] == ("random", [])
