"""Kills over all recipes with several stages; ISOGLOT_KILLS sets how many."""

from __future__ import annotations

import os

import pytest

from tests.pretraining.campaign import campaign, staged_recipes


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_exported_file_is_the_same_after_kills(knowing, tmp_path):
    kills, names = int(os.environ.get("ISOGLOT_KILLS", "100")), staged_recipes()
    outcomes = campaign(names, knowing.folder, tmp_path, kills=kills, seed=0)
    assert {one.name: one.differing for one in outcomes if one.differing} == {}
    assert sum(one.kills for one in outcomes) == kills
    assert sum(one.in_checkpoints for one in outcomes) >= kills // 6
    assert min(one.files for one in outcomes) >= 6
