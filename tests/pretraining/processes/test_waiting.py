"""Waiting for one process longer than collectives may take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import torch

from isoglot.pretraining.processes.liveness import group_store
from isoglot.pretraining.processes.waiting import main_process_first, wait_for_all
from tests.pretraining.groups import Group

if TYPE_CHECKING:
    from accelerate import Accelerator

pytestmark = pytest.mark.slow
TIMEOUT = 1.0


def work_for_long(accelerator: Accelerator) -> None:
    """Twice as long as the time-out, on the main process, in a block and before a meeting."""
    order = []
    with main_process_first(accelerator):
        if accelerator.is_main_process:
            time.sleep(2 * TIMEOUT)
        order.append(time.time())
    times = torch.zeros(2, dtype=torch.float64)
    times[accelerator.process_index] = order[0]
    first, second = accelerator.reduce(times).tolist()
    assert first <= second
    for _ in range(5):
        wait_for_all(accelerator)
    if accelerator.is_main_process:
        keys = [f"isoglot/meeting/{number}" for number in range(6)]
        kept = [group_store().check([key]) for key in keys]
        assert kept == [False] * 4 + [True, True], "two counters are kept"


def collective_for_long(accelerator: Accelerator) -> None:
    if accelerator.is_main_process:
        time.sleep(3 * TIMEOUT)
    accelerator.wait_for_everyone()


def test_work_of_one_process_does_not_run_into_the_time_out(tmp_path):
    group = Group(work_for_long, tmp_path, timeout_seconds=TIMEOUT)
    assert group.end() == [0, 0], group.said(0) + group.said(1)


def test_a_collective_of_that_length_does(tmp_path):
    """So the time-out was in force above."""
    group = Group(collective_for_long, tmp_path, timeout_seconds=TIMEOUT)
    assert group.end()[1] != 0
    assert "Timed out" in group.said(1) or "timeout" in group.said(1).lower()
