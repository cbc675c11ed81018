from __future__ import annotations

import pytest

from isoglot.errors import CorpusError, RecipeError
from isoglot.finetune.scenarios import ScenarioConfig, plans

ALL = ("en", "de", "sw")


def made(name, *, sources=("en",), targets=None, trained=None, trainable=ALL, scorable=ALL):
    config = ScenarioConfig(name=name, sources=sources, targets=targets, trained=trained)
    found = plans(config, trainable=trainable, scorable=scorable, task="task")
    return [(plan.train, plan.score) for plan in found]


def test_what_each_scenario_trains_on_and_scores():
    assert made("zero-shot") == [(("en",), ALL)]
    assert made("pooled") == made("translate-train-all") == [(ALL, ALL)]
    assert made("supervised") == [((code,), (code,)) for code in ALL]
    assert made("translate-train", targets=("sw",)) == [(("sw",), ("sw",))]


def test_several_sources_give_every_direction():
    found = made("zero-shot", sources=("en", "de"))
    assert found == [(("en",), ALL), (("de",), ALL)]


def test_a_language_without_training_data_is_left_out():
    assert made("supervised", trainable=("en",)) == [(("en",), ("en",))]
    assert made("supervised", trainable=("en",), targets=("en", "sw")) == [(("en",), ("en",))]
    with pytest.raises(CorpusError, match="training data in en, and data to score in sw"):
        made("supervised", trainable=("en",), targets=("sw",))


def test_of_the_languages_asked_for_those_are_scored_that_there_are():
    assert made("zero-shot", targets=("sw", "sv")) == [(("en",), ("sw",))]


def test_pairs_are_asked_for_by_their_languages():
    scorable = ("de", "en", "de-en", "en-de", "de-sw")
    ((_, scored),) = made("zero-shot", targets=("de", "en"), scorable=scorable)
    assert scored == ("de", "en", "de-en", "en-de")


@pytest.mark.parametrize("name", ["pooled", "translate-train-all"])
def test_the_languages_of_joined_data_can_be_chosen(name):
    assert made(name, trained=("en", "de", "sv")) == [(("en", "de"), ALL)]
    with pytest.raises(CorpusError, match="no training data in sv: there is some in en, de, sw"):
        made(name, trained=("sv",))


def test_only_joined_data_are_chosen_from():
    with pytest.raises(RecipeError, match="only with the scenario translate-train-all or pooled"):
        ScenarioConfig(name="zero-shot", trained=("en",))


def test_a_scenario_without_a_single_training_is_refused():
    with pytest.raises(CorpusError, match="training data in de, en, and data to score in es, nl"):
        made("supervised", trainable=("de", "en"), scorable=("es", "nl"))


def test_faults_are_named():
    with pytest.raises(CorpusError, match="nothing to score in sv: there is data in en, de, sw"):
        made("zero-shot", targets=("sv",))
    with pytest.raises(RecipeError, match="did you mean 'zero-shot'"):
        ScenarioConfig(name="zeroshot")  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match="give one source"):
        ScenarioConfig(name="translate-train", sources=("en", "de"))
