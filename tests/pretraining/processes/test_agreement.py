"""Processes that differ in a setting, in the folder they see, or in where they would go on."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isoglot.corpus import Corpus
from isoglot.locks import lock_folder
from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.processes import agreement
from isoglot.pretraining.processes.agreement import _hashed, _Process, _sentence, agree
from isoglot.pretraining.processes.distributed import DistributedConfig
from isoglot.pretraining.processes.liveness import watched_processes
from isoglot.types import Cursor
from tests.pretraining import driver
from tests.pretraining.groups import Group

if TYPE_CHECKING:
    from accelerate import Accelerator

HOST = socket.gethostname()


def process(host: str, **values: object) -> _Process:
    return _Process(host, tuple(_hashed(name, value) for name, value in values.items()))


def test_the_sentence_names_rank_host_and_what_differs():
    found = [
        process("a", step=8, seed=1),
        process("a", step=8, seed=1),
        process("b", step=0, seed=1),
    ]
    said = _sentence(found, [2], "Mend it.")
    assert said == "Rank 2 on b differs from rank 0 on a in step: 0 there, 8 on rank 0. Mend it."


def test_long_values_are_told_by_their_hash_and_more_ranks_counted():
    found = [process("a", model="x" * 99), *[process("b", model="y" * 99)] * 3]
    said = _sentence(found, [1, 2, 3], "Mend it.")
    assert "Rank 1 on b (and 2 more ranks) differs" in said
    assert "xxx" not in said
    assert "(hash) there" in said


def differ(accelerator: Accelerator, what: str, corpus: Path, runs: Path) -> None:
    own = accelerator.process_index == 1
    config, opened = driver.config(), Corpus.open(corpus, verify="never")
    state = TrainState(
        stage=0,
        step=8,
        total_steps=8,
        tokens=100,
        cursor=Cursor(),
        corpus_fingerprint="c",
        recipe_fingerprint="r",
    )
    if own and what == "logging":
        config = replace(config, logging=LoggingConfig(validate_every_steps=7))
    if own and what == "distributed":
        config = replace(config, distributed=DistributedConfig(timeout_minutes=7))
    if own and what == "loader":
        config = driver.config(workers=1)
    if own and what == "step":
        state = replace(state, step=0, total_steps=0, tokens=0)
    if own and what == "cursor":
        state = replace(state, cursor=Cursor(counters=(1, 2)))
    if own and what == "version":
        agreement._versions = lambda: {"isoglot": "another"}
    folder = runs / ("other" if own and what == "folder" else "run")
    with watched_processes(accelerator):
        agreement.agree_on_settings(
            accelerator, config, opened, resume=own and what == "resume", budget=None
        )
        agreement._FOLDER_SECONDS = 1.0
        if accelerator.is_main_process:
            with lock_folder(folder):
                agreement.agree_on_folder(accelerator, folder)
        else:
            agreement.agree_on_folder(accelerator, folder)
        agreement.agree_on_position(accelerator, state, [10, 8])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("logging", "the setting logging"),
        ("distributed", "the setting distributed"),
        ("version", "the version of isoglot"),
        ("resume", "the option --resume: True there, False on rank 0"),
        ("folder", "a disk that all machines share"),
        ("step", "the step: 0 there, 8 on rank 0"),
        ("cursor", "the cursor"),
        ("nothing", ""),
        ("loader", ""),
    ],
)
def test_processes_that_differ_end_with_a_sentence(what, words, corpus, tmp_path):
    group = Group(differ, tmp_path, what, corpus.folder, tmp_path, processes=3)
    codes = group.end()
    if not words:
        assert codes == [0, 0, 0], [group.said(rank) for rank in range(3)]
        return
    assert codes == [1, 1, 1], [group.said(rank) for rank in range(3)]
    for rank in (0, 1):
        assert f"Rank 1 on {HOST} differs from rank 0 on {HOST} in" in group.said(rank)
        assert words in group.said(rank)
    assert group.said(2) == ""


def test_one_process_agrees_with_itself(tmp_path):
    class Alone:
        num_processes = 1

    agree(Alone(), {"anything": object()}, "")
    agreement.agree_on_folder(Alone(), tmp_path / "none")
