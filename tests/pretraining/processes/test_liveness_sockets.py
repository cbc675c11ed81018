"""What a connection says of the process at its other end: closed, silent, or a message."""

from __future__ import annotations

import errno
import socket
import sys
import time
from types import SimpleNamespace

import pytest
from benchmarks.machines.network import is_possible, network

from isoglot.pretraining.processes.liveness import Loss
from isoglot.pretraining.processes.liveness_sockets import receive, send


def failing(error: OSError) -> socket.socket:
    def fail(_: int) -> bytes:
        raise error

    return SimpleNamespace(recv=fail)  # type: ignore[return-value]


@pytest.mark.parametrize("number", [errno.ETIMEDOUT, errno.EHOSTUNREACH])
def test_a_machine_that_does_not_answer_is_not_a_process_that_was_killed(number):
    reason = receive(failing(OSError(number, "probes")))["reason"]
    sentence = Loss(rank=1, host="node2", reason=reason).describe()
    assert "Rank 1 on node2 has ended: its machine does not answer" in sentence
    assert "killed" not in sentence


@pytest.mark.parametrize("error", [ConnectionResetError(errno.ECONNRESET, "x"), TimeoutError()])
def test_a_connection_that_was_closed_gives_no_reason(error):
    assert receive(failing(error)) == {}


def test_a_message_is_one_line_and_nothing_of_a_closed_connection():
    here, there = socket.socketpair()
    with here, there:
        send(there, {"rank": 1, "reason": "é"})
        assert receive(here) == {"rank": 1, "reason": "é"}
        there.close()
        assert receive(here) == {}


LISTEN = """
import socket, sys
from pathlib import Path
from isoglot.pretraining.processes.liveness_sockets import keep_alive, receive
with socket.create_server(("", 29400)) as server:
    Path("listens").touch()
    peer, _ = server.accept()
keep_alive(peer)
Path("connected").touch()
print(receive(peer).get("reason"), file=sys.stderr)
"""
CONNECT = """
import socket, time
peer = socket.create_connection(("node1", 29400))
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(not is_possible(), reason="network namespaces take root and iproute2")
def test_probes_find_a_machine_that_has_lost_its_power_after_25_seconds(tmp_path):
    log = tmp_path / "log"
    with network(tmp_path, 2) as (first, second):
        for machine, code, done in ((first, LISTEN, "listens"), (second, CONNECT, "connected")):
            machine.start([sys.executable, "-c", code], {}, log, disk=None)
            while not (tmp_path / done).exists():
                time.sleep(0.05)
        second.lose_power()
        began = time.monotonic()
        assert first.agent is not None
        assert first.agent.wait(60) == 0, log.read_text()
    assert 10 < time.monotonic() - began < 35
    assert "its machine does not answer" in log.read_text()
