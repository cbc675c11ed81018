"""A web server on loopback that behaves as badly as it is told."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from typing_extensions import override


@dataclass
class Hosted:
    """A file that the server has, and how it gives it."""

    content: bytes = b""
    etag: str | None = '"one"'
    ranges: bool = True
    """Whether range requests are answered."""
    if_range: bool = True
    """Whether the validator of a range request is looked at."""
    cuts: list[int] = field(default_factory=list)
    """Bytes of the body after which the connection is cut, of one request after the other."""
    length: int | None = None
    """What the server says of the length, if it lies."""
    chunked: bool = False
    kind: str = "application/octet-stream"
    statuses: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    """Answers that come first, one for each request; the last one is repeated if `forever`."""
    forever: bool = False
    silence: float = 0.0
    """Seconds without a byte, in the middle of the body."""
    shift: int = 0
    """Bytes by which the answer to a range request begins elsewhere."""
    slices: int | None = None
    """The most bytes that a range request is given."""
    then: Hosted | None = None
    """What is hosted instead after the first request."""


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are expected."""


class Server:
    """Files by path, and the requests that came."""

    def __init__(self) -> None:
        self.files: dict[str, Hosted] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path with query, headers in lower case."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            @override
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.answer(self)

            do_HEAD = do_GET  # noqa: N815

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def host(self, path: str, content: bytes | Hosted) -> str:
        """Host a file; gives its address."""
        self.files[path] = content if isinstance(content, Hosted) else Hosted(content)
        return f"{self.url}{path}"

    def asked(self, header: str) -> list[str | None]:
        """A header of each request, in their order."""
        return [headers.get(header) for _, _, headers in self.requests]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append((handler.command, handler.path, headers))
        file = self.files.get(handler.path) or self.files.get(urlsplit(handler.path).path)
        if file is None:
            _plain(handler, 404, {})
            return
        if file.statuses:
            status, more = file.statuses[0]
            if not file.forever:
                file.statuses.pop(0)
            _plain(handler, status, more)
            return
        with contextlib.suppress(ConnectionError):
            _give(handler, file, headers)
        if file.then is not None:
            self.files[handler.path] = file.then


def _plain(handler: BaseHTTPRequestHandler, status: int, more: Mapping[str, str]) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": "0", **more}.items():
        handler.send_header(name, value)
    handler.end_headers()


def _give(handler: BaseHTTPRequestHandler, file: Hosted, headers: Mapping[str, str]) -> None:
    start, status = 0, 200
    asked = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
    same = not file.if_range or headers.get("if-range") in {None, file.etag}
    if asked is not None and file.ranges and same:
        start, status = int(asked[1]), 206
        if start >= len(file.content):
            _plain(handler, 416, {"Content-Range": f"bytes */{len(file.content)}"})
            return
    if status == 206:
        start += file.shift
    body = file.content[start:]
    if status == 206 and file.slices is not None:
        body = body[: file.slices]
    handler.send_response(status)
    handler.send_header("Content-Type", file.kind)
    if file.etag is not None:
        handler.send_header("ETag", file.etag)
    if status == 206:
        end = start + len(body) - 1
        handler.send_header("Content-Range", f"bytes {start}-{end}/{len(file.content)}")
    if file.chunked:
        handler.send_header("Transfer-Encoding", "chunked")
    else:
        handler.send_header("Content-Length", str(file.length or len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        _send(handler, file, body)


def _send(handler: BaseHTTPRequestHandler, file: Hosted, body: bytes) -> None:
    cut = file.cuts.pop(0) if file.cuts else None
    if file.chunked:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    sent = body if cut is None else body[:cut]
    if file.silence:
        handler.wfile.write(sent[: len(sent) // 2])
        handler.wfile.flush()
        time.sleep(file.silence)
        sent = sent[len(sent) // 2 :]
    handler.wfile.write(sent)
    handler.wfile.flush()
    if cut is not None or file.length is not None:
        handler.close_connection = True


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A running server."""
    server = Server()
    try:
        yield server
    finally:
        server.close()
