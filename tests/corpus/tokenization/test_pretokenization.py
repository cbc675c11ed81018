from __future__ import annotations

import pickle
import sys
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.tokenization.pretokenization import (
    FILE,
    Method,
    Pretokenizer,
    _splitter,
    detokenizer,
)
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.sentences import SENTENCES

PAPERS = Pretokenizer({"*": "moses", "th": "thai", "zh": "zh", "hi": "indic", "none": "none"})
LANGUAGE = {"moses": "en", "thai": "th", "zh": "zh", "indic": "hi"}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", 'He said: "It\'s Mr. Smith!"', 'He said : " It \'s Mr. Smith ! "'),
        ("de", "Das kostet z.B. 5 Euro.", "Das kostet z.B. 5 Euro ."),
        ("th", "ฝนตกทั้งคืนที่ท่าเรือ", "ฝนตก ทั้งคืน ที่ ท่าเรือ"),
        ("zh", "老渔夫在修补他的渔网。", "老 渔夫 在 修补 他 的 渔网 。"),
        ("hi", "जाल ठीक करता है।", "जाल ठीक करता है ।"),
        ("none", "As it is.", "As it is."),
    ],
)
def test_words_of_every_kind(language, text, expected):
    assert PAPERS.apply(text, language) == expected


@pytest.mark.parametrize("name", LANGUAGE)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_only_spaces_are_added(name, data):
    parts = [
        *SENTENCES["en"].split(),
        *SENTENCES[LANGUAGE[name]].split(),
        "&<|>",
        "3,5",
        "a-b",
        "'s",
    ]
    text = normalize_text(" ".join(data.draw(st.lists(st.sampled_from(parts), max_size=8))))
    found = Pretokenizer({"*": name}).apply(text, LANGUAGE[name])
    assert found.replace(" ", "") == text.replace(" ", "")
    assert found == " ".join(found.split())


def test_it_is_kept_with_the_tokenizer(tmp_path):
    PAPERS.save(tmp_path)
    assert Pretokenizer.load(tmp_path).methods == PAPERS.methods
    (tmp_path / FILE).write_text("[")
    with pytest.raises(CorpusError, match=r"pretokenize\.json: is damaged"):
        Pretokenizer.load(tmp_path)


def test_nothing_is_written_where_nothing_is_done(tmp_path):
    Pretokenizer({}).save(tmp_path)
    assert not list(tmp_path.iterdir())
    assert Pretokenizer.load(tmp_path).apply("As it is.", "en") == "As it is."


def test_what_cannot_be_done_is_named(monkeypatch):
    with pytest.raises(RecipeError, match=r"pretokenize\.en: 'mosess' is not a way to pretokenize"):
        Pretokenizer({"en": "mosess"})  # type: ignore[dict-item]
    _splitter.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(CorpusError, match=r"pip install 'isoglot\[pretokenize\]'"):
        Pretokenizer({"de": "moses"}).check()


def test_it_travels():
    assert pickle.loads(pickle.dumps(PAPERS)).methods == PAPERS.methods


WORDS = [
    ("moses", "en", "It 's the \" good \" car , isn 't it ?", "It's the \"good\" car, isn't it?"),
    ("moses", "fra", "L' homme , c' est « bien » .", "L'homme, c'est « bien »."),
    ("indic", "ne", "यो राम्रो छ , होइन ? ( हो ) ।", "यो राम्रो छ, होइन? (हो)।"),
    ("zh", "zh_Hans", "我 爱 北京 天安门 ， Python 3 也 好 。", "我爱北京天安门，Python 3也好。"),
    ("zh", "zh", "他 说 Hello , world ( 2 ) ! 好", "他说Hello, world (2)!好"),
    ("thai", "th", "ฉัน รัก ประเทศไทย", "ฉันรักประเทศไทย"),
    ("none", "en", "as , it is", "as , it is"),
]


@pytest.mark.parametrize(("way", "language", "words", "text"), WORDS)
def test_words_are_joined(way, language, words, text):
    assert detokenizer(way, language)(words) == text


def test_every_way_has_one_back():
    assert {way for way, *_ in WORDS} == set(get_args(Method))
    assert all(detokenizer(way, "en")("") == "" for way in get_args(Method))
