from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import huggingface_hub
import huggingface_hub.constants
import pytest

from isoglot.fetching import registry
from isoglot.fetching.http import FetchConfig
from tests.fetching.servers import Hosted, Server, serving


@pytest.fixture(scope="session")
def running() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture
def server(running) -> Server:
    """A server that hosts nothing yet."""
    running.files.clear()
    running.requests.clear()
    return running


@pytest.fixture(autouse=True)
def direct(monkeypatch) -> None:
    """No proxy and no mirror of the machine that runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("ISOGLOT_MIRROR", "HF_ENDPOINT", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(server) -> FetchConfig:
    """Ask the server for everything, and lose no time."""
    return quick(server.url)


def quick(mirror: str | None = None, tries: int = 3) -> FetchConfig:
    return FetchConfig(
        mirror=mirror, connect_seconds=2, read_seconds=0.4, max_tries=tries, backoff_seconds=0
    )


@pytest.fixture
def without_sums(monkeypatch) -> None:
    """The registry without sizes and hashes: tests host pieces of the real files."""
    entries = {
        name: replace(
            entry,
            parts=tuple(replace(part, size=None, sha256=None, sums={}) for part in entry.parts),
        )
        for name, entry in registry.entries().items()
    }
    monkeypatch.setattr(registry, "entries", lambda: entries)


@dataclass
class Hub:
    """A hub on loopback with datasets that tests put there."""

    server: Server

    def put(
        self,
        repo: str,
        files: Mapping[str, bytes],
        *,
        license: str | None = "mit",  # noqa: A002
        sha256: Mapping[str, str] | None = None,
    ) -> None:
        """Host a dataset; every file is said to be stored with its hash (LFS)."""
        siblings = []
        for name, content in files.items():
            digest = (sha256 or {}).get(name) or hashlib.sha256(content).hexdigest()
            lfs = {"sha256": digest, "size": len(content), "pointerSize": 130}
            about = {"rfilename": name, "size": len(content), "blobId": "b", "lfs": lfs}
            siblings.append(about)
            self.server.host(f"/datasets/{repo}/resolve/rev1/{name}", content)
        card = {} if license is None else {"license": license}
        answer = {"id": repo, "sha": "rev1", "siblings": siblings, "cardData": card}
        listed = Hosted(json.dumps(answer).encode(), kind="application/json")
        self.server.host(f"/api/datasets/{repo}", listed)

    def refuse(self, repo: str, status: int, code: str) -> None:
        """Answer with an error of the hub."""
        answer = (status, {"X-Error-Code": code, "X-Error-Message": "no"})
        self.server.host(f"/api/datasets/{repo}", Hosted(statuses=[answer], forever=True))


@pytest.fixture
def hub(server, monkeypatch) -> Hub:
    """The server as hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    return Hub(server)
