from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from isoglot.adaptation.findings import DataFacts, LanguageFacts
from isoglot.adaptation.vocabulary import (
    choose_growth,
    is_badly_split,
    num_words,
    split_limit,
    trained_data,
)
from isoglot.models.transplant.run import grow
from isoglot.models.transplant.used_tokens import WordSaving, word_savings


def facts(tokens_per_word: float, *, unknown: float = 0.0, spaced: bool = True) -> LanguageFacts:
    return LanguageFacts(
        tokens_per_word=tokens_per_word,
        unknown_share=unknown,
        spaced=spaced,
        script="LATIN",
    )


@pytest.mark.parametrize(
    ("best", "limit"), [(1.1, 2.0), (1.25, 2.0), (1.4, 2.24), (1.5, 2.4), (3.0, 2.4)]
)
def test_the_limit_follows_the_best_covered_language(best, limit):
    assert split_limit([facts(best), facts(9.0)]) == pytest.approx(limit)


def test_what_is_badly_split():
    assert not is_badly_split(facts(1.99), 2.0)
    assert is_badly_split(facts(2.01), 2.0)
    assert is_badly_split(facts(1.2, unknown=0.006), 2.0)


def test_words_must_occur_often_enough():
    savings = [WordSaving("a", 24, 90), WordSaving("b", 40, 50), WordSaving("c", 25, 48)]
    assert num_words(savings, 2.0, 100) == 2
    assert num_words(savings, 9.0, 100) == 3
    assert num_words(savings, 9.0, 1) == 1
    assert num_words(savings, 1.0, 100) == 0


def test_a_language_that_the_tokenizer_has_not_seen(looked, monkeypatch):
    """The words that are planned save what the plan says."""
    from isoglot.adaptation import vocabulary as module

    monkeypatch.setattr(module, "_MIN_COUNT", 20)
    monkeypatch.setattr(module, "_MIN_WORDS", 5)
    growth = choose_growth(looked.findings, looked.config, looked.folder)
    assert growth.languages == ("sw",)
    assert 5 <= growth.words <= 125
    report = grow(
        Path(looked.findings.encoder.folder),
        looked.folder.path.parent / "grown",
        texts=[looked.folder.sample / "sw.txt"],
        number=growth.words,
    )
    (split,) = report.splits
    saved = 1 - split.after / split.before
    said = re.search(r"the best save about (\d+) % of the tokens of sw", growth.decision.reason)
    assert said is not None
    assert int(said[1]) == pytest.approx(100 * saved, abs=2)
    assert saved > 0.2
    assert growth.remaining == {"sw": pytest.approx(1 - saved, abs=0.02)}
    assert (
        trained_data(looked.findings, growth).text["sw"].tokens < looked.findings.text["sw"].tokens
    )


def test_tokens_of_training_are_those_of_the_grown_vocabulary_without_what_is_dropped(looked):
    """English stays, Swahili keeps a third of its tokens; a side of a pair counts by its tokens."""
    data = DataFacts(lines=1000, characters=9, tokens=9000, duplicate_share=0.1, heldout=100)
    findings = replace(
        looked.findings,
        text={"en": data, "sw": data},
        pairs={"en-sw": data},
        languages={"en": facts(1.0), "sw": facts(3.0)},
    )
    growth = choose_growth(
        looked.findings, replace(looked.config, vocabulary="keep"), looked.folder
    )
    same = trained_data(findings, growth)
    assert same.text["sw"].tokens == same.pairs["en-sw"].tokens == 7200
    grown = trained_data(findings, growth._replace(remaining={"sw": 1 / 3}))
    assert (grown.text["en"].tokens, grown.text["sw"].tokens) == (7200, 2400)
    assert grown.pairs["en-sw"].tokens == 7200 * (1 + 3 / 3) / (1 + 3)
    assert grown.text["sw"].lines == data.lines


@pytest.mark.parametrize(("others", "tokens"), [(0.004, 9000), (0.4, 5400), (0.6, 9000)])
def test_lines_that_cleaning_drops_are_not_trained_on(others, tokens, looked):
    """Those in another language, unless they are few, or so many that the code may be wrong."""
    data = DataFacts(lines=1000, characters=9, tokens=9000)
    mixed = replace(facts(1.0), other_share=others, other_language="de")
    findings = replace(
        looked.findings,
        text={"en": data, "sw": data},
        pairs={"en-sw": data},
        languages={"en": facts(1.0), "sw": mixed},
    )
    keep = choose_growth(looked.findings, replace(looked.config, vocabulary="keep"), looked.folder)
    found = trained_data(findings, keep)
    assert (found.text["en"].tokens, found.text["sw"].tokens) == (9000, tokens)
    assert found.pairs["en-sw"].tokens == 9000


def test_what_the_user_decides(looked):
    keep = choose_growth(looked.findings, replace(looked.config, vocabulary="keep"), looked.folder)
    assert (keep.words, keep.decision.choice) == (0, "stays as it is")
    some = choose_growth(looked.findings, replace(looked.config, vocabulary=70), looked.folder)
    assert (some.words, some.languages, some.decision.choice) == (70, ("sw",), "70 words of sw")


def test_the_vocabulary_stays(looked):
    """Where words are covered, are rare, or are written without spaces."""
    findings, config, folder = looked.findings, looked.config, looked.folder
    good = replace(findings, languages={"en": facts(1.3), "sw": facts(1.9)})
    growth = choose_growth(good, config, folder)
    assert growth.words == 0
    assert growth.decision.reason.startswith("tokens per word: en 1.30, sw 1.90; limit 2.08")
    small = replace(findings.text["sw"], characters=100)
    rare = replace(findings, text={**findings.text, "sw": small})
    assert "too few to learn vectors for" in choose_growth(rare, config, folder).decision.reason
    chinese = replace(findings, languages={"zh": facts(3.0, spaced=False)})
    assert choose_growth(chinese, replace(config, vocabulary=50), folder).words == 0


@pytest.mark.parametrize(
    ("size", "weights", "body", "gpus", "hinted"),
    [
        (250_002, 278_295_186, 86_293_650, (), True),  # XLM-R base
        (250_002, 278_295_186, 86_293_650, ("H200",), False),
        (250_002, 560_000_000, 303_000_000, (), False),  # its large version: most is its body
        (30_522, 40_000_000, 15_000_000, (), False),
    ],
)
def test_a_smaller_vocabulary_is_suggested_on_a_cpu(looked, size, weights, body, gpus, hinted):
    encoder = replace(
        looked.findings.encoder,
        vocabulary_size=size,
        num_parameters=weights,
        num_body_parameters=body,
    )
    machine = replace(looked.findings.machine, gpus=gpus)
    findings = replace(looked.findings, encoder=encoder, machine=machine)
    config = replace(looked.config, vocabulary="keep")
    reason = choose_growth(findings, config, looked.folder).decision.reason
    assert ("192M of the 278M weights are word embeddings" in reason) == hinted
    assert ("isoglot vocabulary trim" in reason) == hinted


def test_unknown_words_are_worth_a_token(tmp_path):
    """WordPiece makes one unknown token of a whole word: it saves none, and is worth most."""
    from isoglot.models.transplant.tokens import TokenizerTokens
    from tests.models.transplant.tiny_tokenizers import wordpiece

    tokens = TokenizerTokens.open(wordpiece(tmp_path / "t", ["the", "d", "##o", "##g"]))
    (tmp_path / "text").write_text("the dog дом дом дом the the\n", encoding="utf-8")
    assert word_savings(tokens, [tmp_path / "text"]) == [
        WordSaving("дом", 3, 3),
        WordSaving("dog", 1, 2),
    ]


def test_the_plan_says_whether_a_dictionary_is_used(looked):
    for words, told in ((9, "new words begin at the vectors"), ("keep", "is not used")):
        config = replace(looked.config, vocabulary=words, dictionaries=("en-sw.txt",))
        assert told in choose_growth(looked.findings, config, looked.folder).decision.reason
    assert (
        "dictionary"
        not in choose_growth(looked.findings, looked.config, looked.folder).decision.reason
    )
