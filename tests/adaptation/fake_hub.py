"""A small Hugging Face hub on loopback: tokens, repositories, uploads of plain and large files."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "hf_right"  # noqa: S105


class FakeHub(ThreadingHTTPServer):
    """Holds what was uploaded."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        """Repository -> path -> content."""
        self.large: dict[str, bytes] = {}
        """SHA-256 -> content of a large file."""
        self.cards: list[str] = []
        """Model cards that it was asked to check."""
        self.private: dict[str, bool] = {}
        self.may_write = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials in Authorization header"})
        elif self.path.startswith("/api/whoami"):
            self._answer(200, {"name": "me", "type": "user", "auth": {"type": "access_token"}})
        elif self.path.startswith("/api/models/"):
            name = "/".join(self.path.split("/")[3:5]).partition("?")[0]
            if name in self.server.files:
                self._answer(200, {"id": name, "sha": "0" * 40, "siblings": [], "private": True})
            else:
                self._answer(404, {"error": "Repository not found"})
        else:
            self._answer(404, {"error": self.path})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self.path.partition("?")[0].split("/")
        if self.path == "/api/validate-yaml":
            self.server.cards.append(json.loads(body)["content"])
            self._answer(200, {"errors": [], "warnings": []})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials in Authorization header"})
        elif not self.server.may_write:
            self._answer(403, {"error": "You don't have the rights to create a model"})
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            self.server.files.setdefault(name, {})
            self.server.private[name] = asked.get("visibility") == "private"
            self._answer(200, {"url": f"{self.server.address}/{name}", "name": name})
        elif parts[-2:] == ["preupload", "main"]:
            named = json.loads(body)["files"]
            modes = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for one in named
            ]
            self._answer(200, {"files": modes})
        elif self.path.endswith("/info/lfs/objects/batch"):
            objects = [
                {
                    **one,
                    "authenticated": True,
                    "actions": {"upload": {"href": f"{self.server.address}/lfs/{one['oid']}"}},
                }
                for one in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects})
        elif "commit" in parts:
            self._commit("/".join(parts[3:5]), body)
        else:
            self._answer(404, {"error": self.path})

    def do_PUT(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        self.server.large[self.path.rpartition("/")[2]] = self.rfile.read(size)
        self._answer(200, {})

    def _commit(self, name: str, body: bytes) -> None:
        for line in body.splitlines():
            one = json.loads(line)
            value = one["value"]
            if one["key"] == "file":
                content = base64.b64decode(value["content"])
                self.server.files[name][value["path"]] = content
            elif one["key"] == "lfsFile":
                self.server.files[name][value["path"]] = self.server.large[value["oid"]]
        url = f"{self.server.address}/{name}/commit/{'1' * 40}"
        self._answer(200, {"commitOid": "1" * 40, "commitUrl": url, "success": True})

    def _answer(self, status: int, content: Any) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    """A hub while the block runs."""
    with FakeHub() as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        try:
            yield hub
        finally:
            hub.shutdown()
