from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.clean import normalise
from isoglot.corpus.pretokenize import FILE, WAYS, Pretokenization, words
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.sentences import SENTENCES

PAPERS = Pretokenization({"*": "moses", "th": "thai", "zh": "zh", "hi": "indic", "none": "none"})
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


@pytest.mark.parametrize("name", WAYS)
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
    text = normalise(" ".join(data.draw(st.lists(st.sampled_from(parts), max_size=8))))
    found = Pretokenization({"*": name}).apply(text, LANGUAGE[name])
    assert found.replace(" ", "") == text.replace(" ", "")
    assert found == " ".join(found.split())


def test_it_is_kept_with_the_tokenizer(tmp_path):
    PAPERS.save(tmp_path)
    assert Pretokenization.load(tmp_path).names == PAPERS.names
    (tmp_path / FILE).write_text("[")
    with pytest.raises(CorpusError, match=r"pretokenize\.json: is damaged"):
        Pretokenization.load(tmp_path)


def test_nothing_is_written_where_nothing_is_done(tmp_path):
    Pretokenization({}).save(tmp_path)
    assert not list(tmp_path.iterdir())
    assert Pretokenization.load(tmp_path).apply("As it is.", "en") == "As it is."


def test_what_cannot_be_done_is_named(monkeypatch):
    with pytest.raises(RecipeError, match=r"pretokenize\.en: 'mosess' is no way"):
        Pretokenization({"en": "mosess"})  # type: ignore[dict-item]
    words._divider.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(CorpusError, match=r"pip install 'isoglot\[pretokenize\]'"):
        Pretokenization({"de": "moses"}).check()


def test_it_travels():
    assert pickle.loads(pickle.dumps(PAPERS)).names == PAPERS.names
