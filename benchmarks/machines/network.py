"""Machines that are Linux network namespaces, joined by a switch, with cables that can be pulled.

    node1: eth0 --- cable1 --- switch --- cable2 --- eth0: node2

The switch is a bridge in a namespace of its own. A machine has a host name, an address, a boot id
that is another one after a loss of power, and the disk of all others. Names of namespaces contain
the process id, so that two commands do not meet.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SWITCH = f"isoglot-{os.getpid()}-switch"
_HOSTS = Path("/etc/netns")
"""`ip netns exec` mounts the files of its folder NAMESPACE over those of /etc."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def is_possible() -> bool:
    """May this process make networks?"""
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "tc", "unshare")))


def ip(*words: str, namespace: str | None = None, check: bool = True) -> str:
    """One command of iproute2; what it prints."""
    within = ["-n", namespace] if namespace else []
    done = subprocess.run(["ip", *within, *words], check=check, capture_output=True, text=True)
    return done.stdout


@dataclass(slots=True)
class Machine:
    """A network namespace with one end of a cable; the other end is in the switch."""

    number: int
    folder: Path
    """For boot ids and disks; the processes start in it."""
    agent: subprocess.Popen[bytes] | None = field(default=None, init=False)
    boot: str = field(default_factory=lambda: str(uuid.uuid4()), init=False)

    @property
    def name(self) -> str:
        """Its host name."""
        return f"node{self.number}"

    @property
    def namespace(self) -> str:
        """Of its network."""
        return f"isoglot-{os.getpid()}-{self.name}"

    @property
    def cable(self) -> str:
        """The end of its cable in the switch."""
        return f"cable{self.number}"

    def plug(self, *, state: str, check: bool = True) -> None:
        """The cable is `up` (in) or `down` (out)."""
        ip("link", "set", self.cable, state, namespace=SWITCH, check=check)

    def slow_down(self) -> None:
        """Limit what the cable carries to this machine; what would wait longer is lost."""
        limit = ["tbf", "rate", "10mbit", "burst", "32kbit", "latency", "20ms"]
        command = ["tc", "-n", SWITCH, "qdisc", "replace", "dev", self.cable, "root", *limit]
        subprocess.run(command, check=True)

    def processes(self) -> list[int]:
        """All that run in the namespace."""
        return [int(one) for one in ip("netns", "pids", self.namespace, check=False).split()]

    def lose_power(self) -> None:
        """No process goes on, and none says so: the cable is out before they are killed."""
        self.plug(state="down", check=False)
        if self.agent is not None:  # it may not be in the namespace yet
            self.agent.kill()
            self.agent.wait()
        while found := self.processes():
            for one in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        self.boot = str(uuid.uuid4())

    def start(
        self, command: list[str], environment: Mapping[str, str], log: Path, *, disk: Path | None
    ) -> None:
        """Start a command in `folder`; with `disk`, the machine has that folder for itself."""
        boot = self.folder / f"{self.name}.boot"
        boot.write_text(f"{self.boot}\n", encoding="ascii")
        mounts = [f"mount --bind {boot} {_BOOT}"]
        if disk is not None:
            own = self.folder / "disks" / self.name
            own.mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --bind {own} {disk}")
        inside = " && ".join([f"hostname {self.name}", *mounts, 'exec "$@"'])
        within = ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "--mount"]
        with log.open("ab") as file:
            self.agent = subprocess.Popen(
                [*within, "sh", "-c", inside, "sh", *command],
                cwd=self.folder,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,  # Ctrl-C is for this process, which ends them
            )

    def children(self) -> list[int]:
        """The processes that its agent has started."""
        assert self.agent is not None
        file = Path(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children")
        with contextlib.suppress(OSError):
            return [int(one) for one in file.read_text(encoding="ascii").split()]
        return []


@contextlib.contextmanager
def network(folder: Path, number: int) -> Iterator[list[Machine]]:
    """So many machines at one switch; at the end nothing of them is left, processes included."""
    machines = [Machine(one + 1, folder) for one in range(number)]
    names = "".join(f"10.77.0.{one.number} {one.name}\n" for one in machines)
    try:
        ip("netns", "add", SWITCH)
        ip("link", "add", "switch", "type", "bridge", namespace=SWITCH)
        ip("link", "set", "switch", "up", namespace=SWITCH)
        for one in machines:
            ip("netns", "add", one.namespace)
            hosts = _HOSTS / one.namespace / "hosts"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            hosts.write_text(f"127.0.0.1 localhost\n{names}", encoding="ascii")
            peer = ["peer", "name", "eth0", "netns", one.namespace]
            ip("link", "add", one.cable, "type", "veth", *peer, namespace=SWITCH)
            ip("link", "set", one.cable, "master", "switch", namespace=SWITCH)
            one.plug(state="up")
            ip("addr", "add", f"10.77.0.{one.number}/24", "dev", "eth0", namespace=one.namespace)
            for device in ("lo", "eth0"):
                ip("link", "set", device, "up", namespace=one.namespace)
        yield machines
    finally:
        _remove(machines)


def _remove(machines: list[Machine]) -> None:
    """Remove what there is of a network, also of one that was made in part."""
    for one in machines:
        one.lose_power()
        ip("netns", "del", one.namespace, check=False)
        shutil.rmtree(_HOSTS / one.namespace, ignore_errors=True)
    ip("netns", "del", SWITCH, check=False)
    with contextlib.suppress(OSError):
        _HOSTS.rmdir()  # fails if somebody else has files in it
