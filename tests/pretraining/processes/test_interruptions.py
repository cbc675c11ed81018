"""Signals that come once or several times; loader workers and processes that are killed."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest
from rich.console import Console

from isoglot.pretraining.processes import interruptions
from isoglot.pretraining.processes.interruptions import (
    SIGNALS,
    StopSignal,
    exit_at_signals,
    explained_interruptions,
    killed_by_signals,
)
from isoglot.pretraining.processes.liveness import InterruptedRunError, Loss
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.pretraining.test_resume import assert_same


@pytest.fixture
def clock(monkeypatch):
    """A list with the time in seconds; and handlers as they were, after the test."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield now
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_is_a_request_that_is_told_once_and_not_by_the_handler(number, clock):
    said: list[str] = []
    with StopSignal(said.append) as stop:
        assert not stop.requested
        send(number)
        assert said == [], "a handler must not print"
        assert stop.requested
        stop.announce()
        stop.announce()
    assert len(said) == 1
    assert said[0].startswith(f"{number.name}: a checkpoint is saved")


def test_a_process_says_that_it_stops_for_the_signal_of_another():
    said: list[str] = []
    with StopSignal(said.append) as stop:
        stop.announce()
        assert not stop.requested
    assert said[0].startswith("A signal to another process: a checkpoint is saved")


def test_repetitions_count_once_and_a_later_signal_interrupts(clock):
    """scancel and torchrun both send SIGTERM to each process."""
    with StopSignal() as stop:
        send(signal.SIGTERM)
        for _ in range(3):
            clock[0] += 1.6
            send(signal.SIGTERM)
        assert stop.requested
        clock[0] += 0.3
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_repetitions_after_the_run_do_nothing_and_later_signals_what_they_did(clock):
    seen = []
    signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    with StopSignal():
        send(signal.SIGTERM)
    send(signal.SIGTERM)
    assert seen == []
    clock[0] += 6
    send(signal.SIGTERM)
    assert seen == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) not in (None, signal.SIG_DFL)


def test_without_a_signal_the_handlers_are_as_before(clock):
    before = [signal.getsignal(number) for number in SIGNALS]
    with StopSignal():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.slow
def test_a_killed_loader_worker_is_a_sentence_and_the_run_resumes(corpus, tmp_path):
    config, whole, run = driver.config(workers=1), tmp_path / "whole", tmp_path / "run"
    pretrain(driver.config(), corpus, whole, console=Console(quiet=True))
    killed: list[int] = []
    others = set(psutil.Process().children())  # of other tests in this process

    def kill_worker(_: object) -> None:
        workers = set(psutil.Process().children()) - others
        if len(killed) == 5:
            for worker in workers:
                worker.kill()
        killed.append(len(workers))

    with pytest.raises(InterruptedRunError, match=r"process \d+\).*--resume"):
        pretrain(config, corpus, run, console=Console(quiet=True), on_step=kill_worker)
    assert (run / "checkpoints/step-00000003").is_dir()
    assert not (run / ".lock").exists()
    pretrain(config, corpus, run, resume=True, console=Console(quiet=True))
    assert_same(run, whole)


@pytest.mark.parametrize("error", [ConnectionResetError(104, "reset by peer"), EOFError()])
@pytest.mark.parametrize("told", [True, False])
def test_a_worker_that_ends_while_its_batch_is_read(error, told, monkeypatch):
    """Reading fails first; the signal of the worker's end comes a moment later, if at all."""

    def sleep(_: float) -> None:
        if told:
            raise RuntimeError("DataLoader worker (pid 77) is killed by signal: Killed.")

    monkeypatch.setattr("isoglot.pretraining.processes.interruptions.time.sleep", sleep)
    with pytest.raises(InterruptedRunError) as raised, explained_interruptions(1):
        raise error
    assert ("(process 77)" in str(raised.value)) == told
    assert "A loader worker" in str(raised.value)


def test_lost_processes_are_told_and_other_errors_left_alone(monkeypatch):
    monkeypatch.setattr("isoglot.pretraining.processes.interruptions._LOSS_SECONDS", 0.0)
    lost = RuntimeError("[..gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]")
    with pytest.raises(InterruptedRunError, match="has not answered or has ended"):  # noqa: SIM117
        with explained_interruptions(2):
            raise lost
    for number, error in ((1, lost), (2, RuntimeError("shapes do not match"))):
        with pytest.raises(RuntimeError) as raised, explained_interruptions(number):
            raise error
        assert raised.value is error


def test_signals_outside_of_training_end_the_process_unless_another_one_has_failed(
    clock, monkeypatch
):
    monkeypatch.setattr(interruptions, "lost_process", lambda **_: None)
    with exit_at_signals():
        with pytest.raises(SystemExit) as ended:
            send(signal.SIGUSR1)
        assert ended.value.code == 75
        with killed_by_signals():
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        lost = Loss(rank=1, host="b", reason="no memory")
        monkeypatch.setattr(interruptions, "lost_process", lambda **_: lost)
        send(signal.SIGTERM)  # from the launcher: this process ends with that one's error
        lost = Loss(rank=1, host="b", stopped=True)
        with pytest.raises(SystemExit):
            send(signal.SIGTERM)


@pytest.mark.parametrize(("exit_code", "kept"), [(1, signal.SIG_IGN), (None, signal.SIG_DFL)])
def test_a_launchers_signal_does_not_come_before_the_sentence(exit_code, kept):
    """torchrun sends SIGTERM to a process that is about to print why another one has ended."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(InterruptedRunError), exit_at_signals():
            raise InterruptedRunError("Rank 1 has ended.", exit_code=exit_code)
        assert signal.getsignal(signal.SIGTERM) == kept
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_pretrain_called_from_python_prints_its_sentence_before_a_launchers_signal(
    corpus, tmp_path, monkeypatch
):
    """Without the command line, too: the handlers of training are gone when the error leaves it."""

    def lose_a_process(*_, **__):
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
        raise InterruptedRunError("Rank 1 has ended.", exit_code=1)

    monkeypatch.setattr("isoglot.pretraining.run.build_run", lose_a_process)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(InterruptedRunError):
            pretrain(driver.config(), corpus, tmp_path / "run")
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
