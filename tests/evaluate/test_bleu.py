"""BLEU: as sacrebleu says, and as multi-bleu.perl counts."""

import math

import pytest

from isoglot.errors import IsoglotError
from isoglot.evaluate.bleu import as_scores, bleu, multi_bleu


def test_tokenized_bleu_of_a_sentence_by_hand():
    """Words 5/6, pairs 3/5, threes 2/4, fours 1/3; as long as the reference."""
    score = multi_bleu(["the cat sat on a mat"], ["the cat sat on the mat"])
    expected = 100 * math.exp(sum(map(math.log, (5 / 6, 3 / 5, 2 / 4, 1 / 3))) / 4)
    assert score == pytest.approx(expected)


def test_short_translations_are_punished():
    score = multi_bleu(["the cat sat on the"], ["the cat sat on the mat"])
    assert score == pytest.approx(100 * math.exp(1 - 6 / 5))


def test_nothing_is_smoothed():
    assert multi_bleu(["the cat sat"], ["the cat sat on the mat"]) == 0


def test_both_scores_and_their_signature():
    found = bleu(["Hello, world!", ""], ["Hello, world!", "What else?"], "en")
    assert "tok:13a" in found.signature
    assert "version:" in found.signature
    assert (found.empty, found.count) == (1, 2)
    assert 0 < found.multi_bleu < 100
    one, two = as_scores(found, "de-en")
    assert (one.metric, two.metric) == ("bleu", "multi-bleu")
    assert one.value == found.sacrebleu / 100
    assert one.scenario == found.signature
    assert one.language == "de-en"


def test_a_reference_for_each():
    with pytest.raises(IsoglotError, match="1 translations and 2 references"):
        bleu(["a"], ["a", "b"], "en")
