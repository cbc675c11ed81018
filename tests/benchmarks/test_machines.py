"""Networks of namespaces: machines reach each other, cables can be pulled, nothing is left."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from benchmarks.machines.network import SWITCH, Machine, ip, is_possible, network
from benchmarks.machines.trial import Trial

needs_root = pytest.mark.skipif(not is_possible(), reason="takes root and iproute2")


def left(machines: list[Machine]) -> list[str]:
    """What there is of a network."""
    there = {line.split()[0] for line in ip("netns", "list").splitlines()}
    names = [SWITCH, *(one.namespace for one in machines)]
    return [name for name in names if name in there or Path("/etc/netns", name).exists()]


@needs_root
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_nothing_of_a_network_is_left_after_an_interruption(error, tmp_path):
    used: list[Machine] = []

    def interrupted() -> None:
        with network(tmp_path, 2) as machines:
            used.extend(machines)
            assert len(left(machines)) == 3
            machines[0].start(["sleep", "60"], {}, tmp_path / "log", disk=None)
            raise error

    with pytest.raises(error):
        interrupted()
    assert left(used) == []
    assert used[0].agent is not None
    assert used[0].agent.poll() == -signal.SIGKILL


ASK = ["sh", "-c", "(hostname; getent hosts node1; cat /proc/sys/kernel/random/boot_id) >&2"]


@needs_root
def test_a_machine_has_a_name_a_boot_id_and_a_disk(tmp_path):
    with network(tmp_path, 2) as (_, second):
        boots = [second.boot]
        ask(second, [*ASK[:2], f"{ASK[2]}; touch shared/one"], tmp_path)
        second.lose_power()
        second.plug(state="up")
        boots.append(second.boot)
        ask(second, ASK, tmp_path)
    lines = (tmp_path / "log").read_text().split("\n")
    assert [line.split()[-1] for line in lines if line] == [
        word for boot in boots for word in ("node2", "node1", boot)
    ]
    assert len(set(boots)) == 2
    assert (tmp_path / "disks/node2/one").exists()
    assert not (tmp_path / "shared/one").exists()


def ask(machine: Machine, command: list[str], folder: Path) -> None:
    (folder / "shared").mkdir(exist_ok=True)
    machine.start(command, {}, folder / "log", disk=folder / "shared")
    assert machine.agent is not None
    assert machine.agent.wait(10) == 0


@needs_root
def test_what_was_made_of_a_network_is_removed_when_the_rest_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(Machine, "cable", "a name that is too long for a link")
    machines = [Machine(1, tmp_path), Machine(2, tmp_path)]
    with pytest.raises(subprocess.CalledProcessError), network(tmp_path, 2):
        pass
    assert left(machines) == []


def test_sentences_are_those_on_the_end_of_another_process(tmp_path):
    (tmp_path / "logs").mkdir()
    machines = [Machine(1, tmp_path), Machine(2, tmp_path)]
    trial = Trial(machines, 1, tmp_path / "runs" / "ddp-power", "ddp")
    sentence = "Rank 1 on node2 has ended: it was killed, or its machine was lost. Resume it."
    trial.log(machines[0]).write_text(f"note: x\nisoglot: {sentence}\nisoglot: {sentence}\n")
    trial.log(machines[1]).write_text("W1119 torch: node2 has ended\n")
    assert trial.sentences() == {"node1": [sentence], "node2": []}
