"""The papers' tables once more, typed in by hand from the papers and not from the code."""

from __future__ import annotations

import pytest

from isoglot.errors import RecipeError
from isoglot.finetuning.protocols import PROTOCOLS, build_request, find_protocol, settings_for
from isoglot.finetuning.settings import FinetuneRequest, ScenarioConfig
from isoglot.tasks import find_task

# protocol, scenario, task: batch size, learning rate, layer decay, warm-up, weight decay, epochs
TABLES = {
    ("xlm-k", "zero-shot", "mlqa"): (12, 3e-5, 1.0, 0.1, 0.0, 2),
    ("xlm-k", "zero-shot", "conll"): (32, 5e-6, 1.0, 0.1, 0.0, 20),
    ("xlm-k", "zero-shot", "xnli"): (32, 5e-6, 1.0, 0.1, 0.0, 10),
    ("ernie-m-base", "zero-shot", "xnli"): (32, 5e-5, 0.8, 0.1, 0.0, 5),
    ("ernie-m-base", "translate-train-all", "xnli"): (128, 5e-5, 0.8, 0.1, 0.0, 2),
    ("ernie-m-base", "zero-shot", "mlqa"): (32, 3e-4, 0.8, 0.1, 0.0, 2),
    ("ernie-m-base", "zero-shot", "conll"): (8, 4e-4, 0.8, 0.1, 0.01, 10),
    ("ernie-m-base", "pooled", "conll"): (8, 3e-4, 0.8, 0.1, 0.01, 10),
    ("ernie-m-large", "zero-shot", "xnli"): (32, 5e-5, 0.8, 0.1, 0.0, 5),
    ("ernie-m-large", "translate-train-all", "xnli"): (128, 5e-5, 0.8, 0.1, 0.0, 1),
    ("ernie-m-large", "zero-shot", "mlqa"): (32, 8e-5, 0.9, 0.1, 0.0, 2),
    ("ernie-m-large", "zero-shot", "conll"): (8, 4e-4, 0.8, 0.1, 0.01, 10),
    ("ernie-m-large", "pooled", "conll"): (8, 3e-4, 0.8, 0.1, 0.01, 10),
    ("ernie-m-large", "zero-shot", "paws-x"): (64, 5e-5, 0.9, 0.1, 0.01, 10),
    ("ernie-m-large", "translate-train-all", "paws-x"): (64, 7e-5, 0.9, 0.1, 0.01, 2),
    ("mlm-gc", "zero-shot", "xnli"): (16, 5e-4, 1.0, 0.0, 0.0, 3),
    ("mlm-gc", "zero-shot", "mlqa"): (32, 5e-5, 1.0, 0.0, 0.0, 3),
    ("metaxlm", "zero-shot", "ud-pos"): (32, 1e-5, 1.0, 0.1, 0.0, 10),
    ("metaxlm", "zero-shot", "wikiann"): (8, 7e-6, 1.0, 0.1, 0.0, 10),
    ("metaxlm", "zero-shot", "xquad"): (32, 3e-5, 1.0, 0.1, 0.0, 4),
    ("metaxlm", "zero-shot", "mlqa"): (32, 3e-5, 1.0, 0.1, 0.0, 4),
    ("metaxlm", "zero-shot", "tydiqa"): (32, 4e-5, 1.0, 0.1, 0.0, 40),
    ("metaxlm", "zero-shot", "xnli"): (32, 1e-5, 1.0, 0.1, 0.01, 6),
    ("metaxlm", "zero-shot", "paws-x"): (32, 2e-5, 1.0, 0.1, 0.01, 10),
    ("metaxlm", "supervised", "cls"): (32, 2e-5, 1.0, 0.1, 0.01, 5),
    ("metaxlm", "supervised", "cls-music"): (32, 2e-5, 1.0, 0.1, 0.01, 5),
    ("ppa", "zero-shot", "xnli"): (32, 5e-5, 1.0, 1000, 0.01, 2),
    ("ppa", "translate-train", "mlqa"): (32, 3e-5, 1.0, 1000, 0.01, 2),
    ("xtreme", "zero-shot", "xnli"): (32, 2e-5, 1.0, 0.0, 0.0, 5),
    ("xtreme", "zero-shot", "wikiann"): (32, 2e-5, 1.0, 0.0, 0.0, 10),
    ("xtreme", "zero-shot", "squad"): (32, 3e-5, 1.0, 500, 1e-4, 3),
}


def settings_of(protocol, task, scenario="zero-shot"):
    request = FinetuneRequest(scenario=ScenarioConfig(name=scenario), protocol=protocol)
    return settings_for(request, task)


@pytest.mark.parametrize(("where", "values"), TABLES.items())
def test_the_values_are_the_papers(where, values):
    protocol, scenario, task = where
    s = settings_of(protocol, find_task(task), scenario)
    warmup = s.warmup_ratio if s.warmup_steps is None else s.warmup_steps
    found = (
        s.batch_size, s.learning_rate, s.layerwise_lr_decay, warmup, s.weight_decay, s.epochs,
    )  # fmt: skip
    assert found == values


def test_what_the_text_says_besides():
    xnli, mlqa = find_task("xnli"), find_task("mlqa")
    assert settings_of("xlm-k", xnli, "zero-shot").selection == "all-dev"
    for task, length in (("xnli", 256), ("conll", 256), ("mlqa", 384)):  # XGLUE's script
        assert settings_of("xlm-k", find_task(task)).max_length == length
    assert settings_of("ppa", xnli, "translate-train").code_switch
    for name in ("ppa", "mlm-gc"):  # PPA 2.3, MLM-GC 5.3: a linear classifier on the encoder
        assert settings_of(name, xnli).pooler == "none"
    assert settings_of("ppa", mlqa, "translate-train").max_length == 386
    assert [PROTOCOLS[n].seeds for n in ("xlm-k", "ernie-m-base", "metaxlm")] == [4, 5, 5]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_task_without_dev_data_is_not_chosen_by_them(protocol):
    for task in ("cls", "cls-books", "tydiqa", "xquad"):
        assert settings_of(protocol, find_task(task), "zero-shot").selection == "last"


def test_a_task_that_a_paper_did_not_run_has_settings_too():
    for name in PROTOCOLS:
        for task in ("xnli", "wikiann", "squad", "xcopa", "ud-pos"):
            assert settings_of(name, find_task(task), "zero-shot").epochs >= 1


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(RecipeError, match="there is no setting 'epoch'; did you mean 'epochs'"):
        build_request("zero-shot", ("en",), None, None, "xtreme", {"epoch": 1}, None)


def test_an_unknown_protocol_names_the_nearest():
    with pytest.raises(RecipeError, match="did you mean 'xtreme'"):
        find_protocol("xtrem")


def test_sources_are_named_as_languages_are():
    request = build_request("zero-shot", ("swahili", "hau", "ga"), None, None, "xtreme", {}, None)
    assert request.scenario.sources == ("sw", "ha", "ga"), "ga is Irish, not the language Ga"
