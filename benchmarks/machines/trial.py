"""One run under torchrun on the machines of a network, and what disturbs it."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machines.network import Machine
from benchmarks.stops import ENVIRONMENT, last_checkpoint, last_step

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPE = "machines.yaml"
RESTARTS = 3
_DISTURBED = 20
"""The step from which on a run is disturbed."""
_ENDED = re.compile(r"Rank \d+ on \S+ has ended: .*")
_REFUSED = "must be on a disk that all machines share"
_START_SECONDS, _END_SECONDS, _ALONE_SECONDS = 180.0, 900.0, 120.0
"""Most time until a run takes a step, until it has ended, and until it goes on by itself."""


class TrialError(Exception):
    """A run has not come as far as the trial needs."""


@dataclass(slots=True)
class Trial:
    """A run on the machines of a network."""

    machines: list[Machine]
    processes: int
    """On each machine."""
    run: Path
    strategy: str

    @property
    def folder(self) -> Path:
        """Where the recipe is."""
        return self.run.parent.parent

    def start(self, *machines: Machine, own_disks: bool = False) -> None:
        """Start the agents, or those of some machines again."""
        arguments = ["isoglot", "pretrain", RECIPE, "--out", str(self.run), "--resume"]
        arguments += ["--set", f"distributed.strategy={self.strategy}"]
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        torchrun += [f"--nnodes={len(self.machines)}", f"--nproc-per-node={self.processes}"]
        torchrun += ["--rdzv-backend=c10d", "--rdzv-endpoint=node1:29400"]
        torchrun += [f"--rdzv-id={self.run.name}"]
        torchrun += [f"--max-restarts={0 if own_disks else RESTARTS}", "-m"]
        shared = {"GLOO_SOCKET_IFNAME": "eth0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        for one in machines or self.machines:
            one.start(
                [*torchrun, *arguments],
                {**ENVIRONMENT, **shared},
                self.log(one),
                disk=self.run.parent if own_disks else None,
            )

    def log(self, machine: Machine) -> Path:
        """What the processes of a machine print."""
        return self.folder / "logs" / f"{self.run.name}-{machine.name}.log"

    def said(self, machine: Machine) -> str:
        """Everything that they have printed so far."""
        return self.log(machine).read_text(encoding="utf-8", errors="replace")

    def reaches(self, step: int, seconds: float = _START_SECONDS) -> bool:
        """Wait until a step is noted; False if it was not in time, or all agents have ended."""
        deadline = time.monotonic() + seconds
        while last_step(self.run) < step:
            if time.monotonic() > deadline or not any(map(_goes_on, self.machines)):
                return False
            time.sleep(0.02)
        return True

    def disturb(self, how: Callable[[], None]) -> dict[str, Any]:
        """Disturb a run that trains; what is found until all processes that it had have ended."""
        self.start()
        if not self.reaches(_DISTURBED):
            raise TrialError(f"{self.run} takes no steps.")
        workers = {one.name: one.children() for one in self.machines}
        began = time.monotonic()
        how()
        return {
            "seconds_to_end": self._seconds_to_end(workers, began),
            "step": last_step(self.run),
            "saved": last_checkpoint(self.run),
            "sentences": self.sentences(),
        }

    def _seconds_to_end(
        self, workers: dict[str, list[int]], began: float
    ) -> dict[str, float | None]:
        """By machine; none: they go on."""
        seconds: dict[str, float | None] = dict.fromkeys(workers)
        while None in seconds.values() and time.monotonic() - began < _END_SECONDS:
            for name, ones in workers.items():
                if seconds[name] is None and not any(map(_runs, ones)):
                    seconds[name] = _since(began)
            time.sleep(0.05)
        return seconds

    def goes_on(self, found: dict[str, Any], seconds: float = _START_SECONDS) -> dict[str, Any]:
        """Wait until the run takes steps again, and keep how long that took."""
        began = time.monotonic()
        took = self.reaches(found["step"] + 5, seconds)
        return {**found, "seconds_to_go_on": _since(began) if took else None}

    def wait(self) -> dict[str, int | None]:
        """Wait for the end of all agents; their exit codes."""
        deadline = time.monotonic() + _END_SECONDS
        while any(map(_goes_on, self.machines)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.exit_codes()

    def exit_codes(self) -> dict[str, int | None]:
        """Of the agents; none: it goes on."""
        return {one.name: one.agent.poll() for one in self.machines if one.agent}

    def sentences(self) -> dict[str, list[str]]:
        """What the processes of each machine have said of another one's end."""
        found = {one.name: _ENDED.findall(self.said(one)) for one in self.machines}
        return {name: sorted(set(lines)) for name, lines in found.items()}


def _goes_on(machine: Machine) -> bool:
    return machine.agent is not None and machine.agent.poll() is None


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def undisturbed(trial: Trial) -> dict[str, Any]:
    """Nothing happens."""
    trial.start()
    return {}


def slow(trial: Trial) -> dict[str, Any]:
    """Every cable is slow and loses packets."""
    for one in trial.machines:
        one.slow_down()
    trial.start()
    return {}


def interrupted(trial: Trial) -> dict[str, Any]:
    """A cable is out for eight seconds: less than keep-alive probes take."""
    trial.start()
    if not trial.reaches(_DISTURBED):
        raise TrialError(f"{trial.run} takes no steps.")
    last = trial.machines[-1]
    last.plug(state="down")
    time.sleep(8)
    found = {"step": last_step(trial.run)}
    last.plug(state="up")
    return {**trial.goes_on(found), "sentences": trial.sentences()}


def cable(trial: Trial, seconds: float = 0.0) -> dict[str, Any]:
    """A cable stays out until all processes have ended, and so long after it."""
    last = trial.machines[-1]
    found = trial.disturb(lambda: last.plug(state="down"))
    time.sleep(seconds)
    found["agents_alone"] = trial.exit_codes()
    last.plug(state="up")
    if all(map(_goes_on, trial.machines)):
        found = trial.goes_on(found, _ALONE_SECONDS)
    if found.get("seconds_to_go_on") is None:
        return _started_again(trial, last, found)
    return found


def _started_again(trial: Trial, machine: Machine, found: dict[str, Any]) -> dict[str, Any]:
    """A machine is there again: its agent is started, and any other one once it has ended."""
    machine.lose_power()  # what a scheduler does with the rest of a job
    machine.plug(state="up")
    began = time.monotonic()
    trial.start(machine)
    again = [machine.name]
    while last_step(trial.run) < found["step"] + 5 and time.monotonic() - began < _START_SECONDS:
        for one in trial.machines:
            if one.name not in again and not _goes_on(one):
                trial.start(one)
                again.append(one.name)
        time.sleep(0.05)
    took = _since(began) if last_step(trial.run) >= found["step"] + 5 else None
    return {**found, "started_again": again, "seconds_to_go_on": took}


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


def power(trial: Trial) -> dict[str, Any]:
    """The last machine loses power."""
    last = trial.machines[-1]
    return _started_again(trial, last, trial.disturb(last.lose_power))


def first_power(trial: Trial) -> dict[str, Any]:
    """The first machine loses power: the agents' store and rank 0 are there."""
    first = trial.machines[0]
    began = time.monotonic()
    found = trial.disturb(first.lose_power)
    while any(map(_goes_on, trial.machines)) and time.monotonic() - began < _ALONE_SECONDS:
        time.sleep(0.1)
    found |= {"agents_alone": trial.exit_codes(), "seconds_alone": _since(began)}
    return _started_again(trial, first, found)


def stopped(trial: Trial) -> dict[str, Any]:
    """The last machine's agent gets SIGTERM."""
    last = trial.machines[-1]

    def stop() -> None:
        assert last.agent is not None
        last.agent.terminate()

    found = trial.disturb(stop)
    assert last.agent is not None
    found["agent_exit_code"] = last.agent.wait(60)
    return _started_again(trial, last, found)


def killed(trial: Trial) -> dict[str, Any]:
    """A process of the last machine is killed; torchrun starts all again."""

    def kill() -> None:
        os.kill(random.choice(trial.machines[-1].children()), signal.SIGKILL)

    return trial.goes_on(trial.disturb(kill))


def own_disk(trial: Trial) -> dict[str, Any]:
    """Each machine has a disk of its own in the place of the shared one."""
    trial.start(own_disks=True)
    codes = trial.wait()
    refused = {one.name: _REFUSED in trial.said(one) for one in trial.machines}
    return {"exit_codes": codes, "refused": refused}


DISTURBANCES: dict[str, Callable[[Trial], dict[str, Any]]] = {
    "undisturbed": undisturbed,
    "slow": slow,
    "interrupted": interrupted,
    "cable": cable,
    "long cable": partial(cable, seconds=90.0),
    "power": power,
    "first power": first_power,
    "killed": killed,
    "stopped": stopped,
    "own disk": own_disk,
}
