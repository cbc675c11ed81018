"""Scores of links against gold links, by the definitions."""

from __future__ import annotations

import pytest

from isoglot.alignment.gold import GoldLinks
from isoglot.errors import CorpusError

WORDS = (["a", "b", "c"], ["x", "y"])


def gold_file(tmp_path, text):
    file = tmp_path / "gold"
    file.write_text(text, encoding="utf-8")
    return file


def test_error_rate_precision_and_recall(tmp_path):
    gold = GoldLinks(gold_file(tmp_path, "0-0 1p1\n0-1 2?0\n"))
    gold.add(WORDS, [(0, 0), (1, 1), (2, 1)])
    gold.add(WORDS, [(0, 0)])
    found = {score.metric: score for score in gold.scores()}
    # found 4, sure 2; of the found, 1 sure and 2 possible (sure ones are possible)
    assert found["aer"].value == pytest.approx(1 - (1 + 2) / (4 + 2))
    assert found["precision"].value == pytest.approx(2 / 4)
    assert found["recall"].value == pytest.approx(1 / 2)
    assert all(score.low <= score.value <= score.high for score in found.values())


def test_words_counted_from_one(tmp_path):
    gold = GoldLinks(gold_file(tmp_path, "1-1 3-2\n"), first_word=1)
    gold.add(WORDS, [(0, 0), (2, 1)])
    assert gold.scores()[0].value == 0
    wrong = GoldLinks(gold_file(tmp_path, "1-1 3-2\n"))
    with pytest.raises(CorpusError, match="add --gold-from 1"):
        wrong.add(WORDS, [])


def test_gold_of_another_file(tmp_path):
    gold = GoldLinks(gold_file(tmp_path, "0-0\n0-0\n"))
    gold.add(WORDS, [])
    with pytest.raises(CorpusError, match="has 2 lines, and there are 1 pairs"):
        gold.scores()
    gold.add(WORDS, [])
    with pytest.raises(CorpusError, match="has 2 lines, and there are more pairs"):
        gold.add(WORDS, [])


def test_text_that_is_no_link(tmp_path):
    with pytest.raises(CorpusError, match="'0=0' is not a link"):
        GoldLinks(gold_file(tmp_path, "0-0\n0=0\n"))
