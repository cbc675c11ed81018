"""Words that were divided come together again as people write them."""

import pytest

from isoglot.corpus.pretokenize import WAYS
from isoglot.models.joining_words import joiner

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
    assert joiner(way, language)(words) == text


def test_every_way_has_one_back():
    assert {way for way, *_ in WORDS} == {*WAYS, "none"}
    assert all(joiner(way, "en")("") == "" for way in WAYS)
