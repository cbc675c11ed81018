"""BLEU: as sacrebleu says, and as multi-bleu.perl counts."""

import math

import pytest

from isoglot.errors import IsoglotError
from isoglot.evaluation import bleu as module
from isoglot.evaluation.bleu import as_scores, bleu, multi_bleu


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
    assert (found.num_empty, found.count) == (1, 2)
    assert 0 < found.multi_bleu < 100
    one, two = as_scores(found, "de-en", of="test.en, greedy")
    assert (one.metric, two.metric) == ("bleu", "multi-bleu")
    assert one.value == found.sacrebleu / 100
    assert one.scenario == f"test.en, greedy; {found.signature}"
    assert one.language == "de-en"


def test_words_are_cut_by_moses_first():
    """No four of the three words between spaces are right in a row; of the five of Moses's are."""
    found = bleu(["Hello, dear world!"], ["Hello, dear world ?"], "en")
    expected = 100 * math.exp(sum(map(math.log, (4 / 5, 3 / 4, 2 / 3, 1 / 2))) / 4)
    assert found.multi_bleu == pytest.approx(expected)


@pytest.mark.parametrize("language", ["zh", "zh-Hans", "zho"])
def test_chinese_is_cut_into_characters(language, monkeypatch):
    monkeypatch.setattr(module, "_moses", lambda lines, _: list(lines))  # slow to begin with it
    found = bleu(["我爱北京。"], ["我爱北京。"], language)
    assert "tok:zh" in found.signature
    assert found.sacrebleu == pytest.approx(100)


@pytest.mark.parametrize(
    ("translations", "references", "said"),
    [
        (1, 2, "1 sentences and 2 references"),
        (0, 1, "0 sentences and 1 references"),
        (0, 0, "at least one sentence"),
    ],
)
def test_a_reference_for_each(translations, references, said):
    with pytest.raises(IsoglotError, match=said):
        bleu(["a"] * translations, ["a"] * references, "en")
