"""What tables, studies and reports share: the transfer gap."""

from __future__ import annotations

import pytest

from isoglot.averaging import source_of, transfer_gap


def test_the_gap_is_the_source_less_the_mean_of_the_others():
    values = {"en": 0.9, "de": 0.7, "sw": 0.5}
    assert transfer_gap(values, "zero-shot from en, xtreme") == pytest.approx(0.3)
    assert transfer_gap(values, "zero-shot from sw") == pytest.approx(-0.3)


def test_a_loss_is_above_zero_also_where_less_is_better():
    values = {"en": 0.1, "de": 0.3}
    assert transfer_gap(values, "zero-shot from en", higher_is_better=False) == pytest.approx(0.2)


def test_there_is_none_without_a_source_or_without_others():
    assert transfer_gap({"en": 0.9, "de": 0.7}, "translate-train-all, ppa") is None
    assert transfer_gap({"en": 0.9}, "zero-shot from en") is None
    assert transfer_gap({"de": 0.9}, "zero-shot from en") is None
    assert transfer_gap({"en": 0.9, "de": 0.7}, None) is None


def test_questions_and_contexts_in_two_languages_do_not_count():
    values = {"en": 0.9, "de": 0.7, "en-de": 0.1}
    assert transfer_gap(values, "zero-shot from en") == pytest.approx(0.2)
    assert source_of("zero-shot from en, xlm-k, epochs=2") == "en"
