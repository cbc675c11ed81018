"""Connections between the processes of a run, for `liveness.py`: messages, addresses, keep-alive.

A message is one line of JSON of at most 4,096 bytes.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import os
import socket
from typing import Any

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A machine that is lost is noticed 3 × 5 to 10 + 3 × 5 s later."""
_LINE_BYTES = 4096
"""Longest message."""
_UNANSWERED = (
    errno.ETIMEDOUT,
    errno.EHOSTUNREACH,
    errno.EHOSTDOWN,
    errno.ENETUNREACH,
    errno.ENETDOWN,
)
"""Errors of a connection whose probes nobody has answered."""
_LOST = "its machine does not answer any more, which has lost its power or its network"


def keep_alive(peer: socket.socket) -> None:
    """Let the kernel probe a connection on which nothing is sent."""
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def send(peer: socket.socket, said: dict[str, object]) -> None:
    """Send one message; a peer that has ended gets none."""
    with contextlib.suppress(OSError):
        peer.settimeout(5.0)
        peer.sendall(json.dumps(said).encode()[: _LINE_BYTES - 1] + b"\n")


def receive(peer: socket.socket) -> dict[str, Any]:
    """One message; empty if the connection was closed, or what came is none.

    For a machine that does not answer any more there is the reason that its process cannot say.
    """
    line = b""
    try:
        while not line.endswith(b"\n") and len(line) < _LINE_BYTES:
            more = peer.recv(_LINE_BYTES)
            if not more:
                break
            line += more
        said = json.loads(line.split(b"\n")[0])
    except ValueError:
        return {}
    except OSError as error:
        return {"reason": _LOST} if error.errno in _UNANSWERED else {}
    return said if isinstance(said, dict) else {}


def listen() -> socket.socket:
    """A server on a free port of all addresses of this machine."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def own_address() -> str:
    """The address by which other machines reach this one: that of the way to the group's store."""
    master = os.environ.get("MASTER_ADDR", socket.gethostname())
    port = int(os.environ.get("MASTER_PORT", "29500"))
    kind, _, _, _, place = socket.getaddrinfo(master, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.connect(place)  # sends nothing
        own = str(probe.getsockname()[0])
    # the store is on this machine, whose name others know
    return master if ipaddress.ip_address(own).is_loopback else own
