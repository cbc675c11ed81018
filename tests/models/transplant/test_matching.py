"""Every rule of matching, token by token, between hand-made vocabularies."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.dictionary import Dictionary
from isoglot.models.transplant.matching import match_tokens
from isoglot.models.transplant.tokens import (
    SurfaceForm,
    TokenFormat,
    TokenizerTokens,
    casefolded,
    surface_form,
)
from tests.models.transplant.large_vocabulary import large_match
from tests.models.transplant.tiny_tokenizers import (
    KINDS,
    ROLES,
    bpe,
    byte_letters,
    of_words,
    save,
    unigram,
    wordpiece,
)

BYTES = TokenFormat("bytes", "Ġ", byte_fallback=False)


def found(source, target, dictionary=None, **settings):
    """Each target token with the kind of its match and its source tokens."""
    matches = match_tokens(source, target, dictionary, TransplantConfig(**settings))
    names = dict(source.by_id)
    return {
        token: (matches.kinds[index], [names[other] for other in matches.sources_of(index)])
        for index, token in target.by_id
    }


def weights(source, target, token, dictionary=None, **settings):
    matches = match_tokens(source, target, dictionary, TransplantConfig(**settings))
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
    return TokenizerTokens.open(bpe(tmp_path_factory.mktemp("en"), marked, byte_level=True))


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    """SentencePiece with bytes, as XLM-R's."""
    pieces = ["▁house", "▁House", "house", "▁café", "▁２", "ing", "▁ing", "▁Paris", "▁", "<0xC3>"]
    pieces += ["<0x41>", "▁nyumba", "▁Nyumba", "nyumba", "▁barafu", "家", "▁xyz", "▁ﬁsh", "<lang>"]
    folder = tmp_path_factory.mktemp("xx")
    return TokenizerTokens.open(unigram(folder, pieces, byte_fallback=True))


DICTIONARY = Dictionary(
    {
        casefolded(word): translations
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


def test_the_dictionary_comes_before_the_spelling(tmp_path):
    """MetaXLM 3.2: first the translation, then the mapping. Turkish *at* is a horse."""
    source = TokenizerTokens.open(of_words("bytes", tmp_path / "en", ["at", "horse", "dog", "the"]))
    target = TokenizerTokens.open(unigram(tmp_path / "xx", ["▁at", "at", "▁horse", "▁dog", "▁the"]))
    turkish = Dictionary({"at": ["horse"], "köpek": ["dog"]})
    first = found(source, target, turkish)
    assert first["▁at"] == ("dictionary", ["Ġhorse"])
    assert first["▁horse"] == ("marker", ["Ġhorse"])
    assert first["▁dog"] == ("marker", ["Ġdog"])  # no word of the dictionary
    assert first["at"] == ("boundary", ["Ġat"])  # inside a word it is no word
    last = found(source, target, turkish, order="spelling")
    assert last["▁at"] == ("marker", ["Ġat"])
    assert {**first, "▁at": None} == {**last, "▁at": None}
    # a translation that the source cannot write leaves the word to its spelling
    lost = found(source, target, Dictionary({"at": ["日本"]}), translation_subwords=False)
    assert lost["▁at"] == ("marker", ["Ġat"])
    kept = match_tokens(source, target, turkish, first_translated=target.ids["▁at"] + 1)
    assert kept.kinds[target.ids["▁at"]] == "marker"


@pytest.mark.parametrize(
    ("settings", "boundary", "subwords"),
    [
        ({}, True, True),
        ({"boundary": False}, False, True),
        ({"translation_subwords": False}, True, False),
        ({"strict": True}, False, False),
    ],
)
def test_what_the_paper_does_not_have_can_be_switched_off(
    english, multilingual, settings, boundary, subwords
):
    said = found(english, multilingual, DICTIONARY, **settings)
    assert said["▁Paris"] == (("boundary", ["Paris"]) if boundary else ("random", []))
    assert said["▁ing"] == (("boundary", ["ing"]) if boundary else ("random", []))
    parts = ["Ġice", "Ġcream", "Ġbig"] if subwords else ["Ġbig"]
    assert said["▁barafu"] == ("dictionary", parts)
    # what is exact or normalized stays in all of them
    assert said["▁house"] == ("marker", ["Ġhouse"])
    assert said["▁２"] == ("unicode", ["Ġ2"])
    assert said["▁House"] == ("case", ["Ġhouse"])
    assert said["ing"] == ("exact", ["ing"])
    assert said["▁nyumba"] == ("dictionary", ["Ġhouse"])


def test_the_fallbacks(english, multilingual):
    assert found(english, multilingual)["▁nyumba"] == ("random", [])
    assert found(english, multilingual, fallback="zero")["▁nyumba"] == ("zero", [])
    kind, pieces = found(english, multilingual, fallback="subwords")["▁nyumba"]
    assert kind == "subwords"
    assert pieces == ["Ġ", "n", "y", "u", "m", "b", "a"]


def test_pieces_unknown_to_the_source_are_drawn(tmp_path):
    source = TokenizerTokens.open(wordpiece(tmp_path / "source", ["a", "##b"]))
    target = TokenizerTokens.open(wordpiece(tmp_path / "target", ["ab", "abb", "az", "##az"]))
    said = found(source, target, fallback="subwords")
    assert said["ab"] == ("subwords", ["a", "##b"])
    assert weights(source, target, "abb", fallback="subwords") == {"a": 1 / 3, "##b": 2 / 3}
    assert said["az"] == said["##az"] == ("random", [])


def test_a_mark_alone_is_no_part_of_a_piece_inside_a_word(tmp_path):
    source = TokenizerTokens.open(unigram(tmp_path / "source", ["▁", "a", "b"]))
    target = TokenizerTokens.open(unigram(tmp_path / "target", ["▁ab", "ab"]))
    said = found(source, target, fallback="subwords")
    assert said["▁ab"] == ("subwords", ["▁", "a", "b"])
    assert said["ab"] == ("subwords", ["a", "b"])


def test_wordpiece_to_sentencepiece(tmp_path):
    source = TokenizerTokens.open(
        wordpiece(tmp_path / "source", ["house", "##ing", ",", "猫", "##s", "s"])
    )
    pieces = ["▁house", "house", "ing", "▁ing", ",", "猫", "s", "▁s", "▁HOUSE"]
    target = TokenizerTokens.open(unigram(tmp_path / "target", pieces))
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


@pytest.mark.parametrize(("kind", "into"), [*product(KINDS, KINDS)])
def test_whole_words_match_between_all_kinds(tmp_path, kind, into):
    words = ["house", "Straße", "день", "नमस्ते"]
    source = TokenizerTokens.open(of_words(kind, tmp_path / "source", words))
    target = TokenizerTokens.open(of_words(into, tmp_path / "target", words))
    said = match_tokens(source, target)
    for word in words:
        (own,) = (target.ids[t] for t in target.ids if target.surface(t) == SurfaceForm(word, True))
        (other,) = said.sources_of(own)
        assert source.surface(dict(source.by_id)[other]) == SurfaceForm(word, True)
        same = {kind, into} <= {"unigram", "sentencepiece-bpe"} or kind == into
        assert said.kinds[own] == ("exact" if same else "marker")


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_of_one_tokenizer_matches_itself(tmp_path, kind):
    own = TokenizerTokens.open(of_words(kind, tmp_path, ["house", "House", "ﬁsh", "fish"], "aA,"))
    said = match_tokens(own, own)
    assert [said.sources_of(index) for index in range(own.vocabulary.size)] == [
        [index] for index in range(own.vocabulary.size)
    ]
    assert set(said.kinds) == {"special", "exact"}


@given(st.text(max_size=12))
@example(" ")
@example("  x")
@settings(max_examples=30)
def test_bytes_and_marks_are_undone(text):
    assert surface_form(f"Ġ{byte_letters(text)}", BYTES) == SurfaceForm(text, starts_word=True)
    # a space at the very start is the mark itself
    assert surface_form(byte_letters(text), BYTES) == SurfaceForm(
        text.removeprefix(" "), text[:1] == " "
    )


def test_time_of_a_large_vocabulary(tmp_path):
    """A 25th of 250,000 tokens and of 100,000 entries, in a 25th of a minute of one core."""
    matches, seconds = large_match(tmp_path, tokens=10_000, entries=4_000)
    assert seconds < 2.4
    assert set(matches.kinds) == {"special", "marker", "dictionary", "subwords"}


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
    source = TokenizerTokens.open(save(tokenizer, tmp_path / "ends"))
    assert source.surface("house</w>") == SurfaceForm("house", starts_word=True)
    assert source.surface("hou") == SurfaceForm("hou", starts_word=False)
    target = TokenizerTokens.open(unigram(tmp_path / "sp", ["▁house", "hou", "se", "▁a", "▁b"]))
    of = found(source, target)
    assert of["▁house"] == ("marker", ["house</w>"])
    assert of["hou"] == ("exact", ["hou"])
    assert of["se"] == ("boundary", ["se</w>"])
    assert of["▁b"] == ("random", [])


def test_an_added_token_is_a_word_with_or_without_the_mark(tmp_path):
    for kind, tokens in (("unigram", ["▁nyumba", "nyota"]), ("wordpiece", ["nyota"])):
        folder = of_words(kind, tmp_path / kind, ["house", "dog"])
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(tokens)
        tokenizer.save_pretrained(folder)
        opened = TokenizerTokens.open(folder)
        for token in tokens:
            expected = SurfaceForm(token.removeprefix("▁"), starts_word=True)
            assert opened.surface(token) == expected
