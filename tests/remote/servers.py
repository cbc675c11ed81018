"""Stores on loopback: a web server with ranges, one that imitates the hub's file endpoints, moto's
object store, and a proxy in front of any of them that fails as often as it is told."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from typing_extensions import override


@dataclass
class Store:
    """Files by path; how requests are answered, and how many there were."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    """Whether range requests are answered, and sizes told."""
    versions: bool = True
    """Whether there is an ETag."""
    forbidden: bool = False
    repo: str = ""
    """The dataset whose files these are, for a hub."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path."""
    sent_bytes: int = 0

    def put_folder(self, folder: Path, prefix: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.files[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()

    def reads(self, suffix: str = "") -> int:
        """GET requests for files that end so."""
        return sum(method == "GET" and path.endswith(suffix) for method, path in self.requests)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.store.requests.append((self.command, path))
        if self.store.forbidden:
            self._send(403, b"")
        elif path.startswith("/api/datasets/"):
            self._describe()
        else:
            content = self.store.files.get(re.sub(r"/resolve/[^/]+", "", path))
            self._send(404, b"") if content is None else self._give(content)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        """The hub: sizes and hashes of files."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(200, json.dumps([one for p in body["paths"] for one in self._about(p)]).encode())

    def _about(self, path: str) -> list[dict[str, object]]:
        content = self.store.files.get(f"/datasets/{self.store.repo}/{path}")
        if content is None:
            return []
        digest = hashlib.sha256(content).hexdigest()
        lfs = {"oid": digest, "sha256": digest, "size": len(content), "pointerSize": 1}
        return [{"type": "file", "path": path, "size": len(content), "oid": "b", "lfs": lfs}]

    def _describe(self) -> None:
        """The hub: a dataset, or the files of one of its folders."""
        repo, path = self.store.repo, unquote(urlsplit(self.path).path)
        if not path.startswith(f"/api/datasets/{repo}"):
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        prefix = f"/datasets/{repo}/"
        names = [name.removeprefix(prefix) for name in self.store.files if name.startswith(prefix)]
        if "/tree/" in path:
            folder = path.partition("/tree/")[2].partition("/")[2]
            below = [name for name in names if name.startswith(f"{folder}/".lstrip("/"))]
            found = [one for name in below for one in self._about(name)]
            inner = {n.rpartition("/")[0] for n in below if "/" in n.removeprefix(f"{folder}/")}
            found += [{"type": "directory", "path": one, "oid": "d", "size": 0} for one in inner]
            self._send(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
            return
        siblings = [
            {"rfilename": about["path"], "size": about["size"], "lfs": about["lfs"]}
            for name in names
            for about in self._about(name)
        ]
        answer = {"id": repo, "sha": "rev1", "siblings": siblings, "cardData": {"license": "mit"}}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _give(self, content: bytes) -> None:
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {"ETag": etag} if self.store.versions else {}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None or not self.store.ranges:
            if not self.store.ranges:
                headers["Accept-Ranges"] = "none"
            self._send(200, content, headers)
            return
        start, end = int(asked[1]), int(asked[2] or len(content) - 1) + 1
        part = content[start:end]
        total = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
        self._send(206, part, {**headers, "Content-Range": total})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.store.sent_bytes += len(body)
            self.wfile.write(body)


@contextlib.contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        @override
        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that hang up are expected."""

    server = Quiet(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def web_server(store: Store) -> Iterator[str]:
    """The address of a web server that gives the files of a store."""
    with _running(type("Handler", (_Handler,), {"store": store})) as address:
        yield address


@dataclass
class Traffic:
    """What went through a proxy."""

    every: int
    """One request in so many fails; 1: all; 0: none."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: int = 0
    sent_bytes: int = 0
    """Bytes of bodies of GET requests."""
    silence_seconds: float = 3.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self) -> str | None:
        """How the next request fails, in turn: status 500, a cut body, a late answer."""
        with self.lock:
            if not self.every or len(self.requests) % self.every:
                return None
            self.faults += 1
            return ("500", "cut", "silence")[self.faults % 3]


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: str
    traffic: Traffic

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        traffic = self.traffic
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with traffic.lock:
            traffic.requests.append((self.command, self.path))
        fault = traffic.fault()
        if fault == "500":
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == "silence":
            time.sleep(traffic.silence_seconds)
        connection = http.client.HTTPConnection(self.host, timeout=30)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self._answer(answer, len(content))
        if self.command == "GET":
            traffic.sent_bytes += len(content)
        if fault == "cut":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

    def _answer(self, answer: http.client.HTTPResponse, size: int) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "server", "date"}:
                self.send_header(name, value)
        if answer.getheader("Content-Length") is None:
            self.send_header("Content-Length", str(size))
        self.end_headers()


@contextlib.contextmanager
def flaky_proxy(target: str, traffic: Traffic) -> Iterator[str]:
    """The address of a proxy that passes requests on to a server, and fails some."""
    host = target.removeprefix("http://")
    with _running(type("Proxy", (_Proxy,), {"host": host, "traffic": traffic})) as address:
        yield address


@contextlib.contextmanager
def object_store() -> Iterator[str]:
    """The address of moto's S3 server."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
