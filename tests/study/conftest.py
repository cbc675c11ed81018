from __future__ import annotations

import pytest

from isoglot.tasks.testbed import WorldSizes

SIZES = WorldSizes(train=64, dev=16, test=40)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch) -> None:
    """Testbed tasks have few examples: most of the time would go into generating them."""
    monkeypatch.setattr("isoglot.tasks.testbed.WorldSizes", lambda: SIZES)
