"""The server answers for its own page only, and says what it shares."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from isoglot.errors import IsoglotError
from isoglot.explore.server import OwnRoutes, bind, sharing_note


def ask(served, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    """Status and body of a request; the path is sent as it is."""
    place = urlsplit(served.address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    connection.request(method, path, headers={"Host": host or place.netloc})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


@pytest.mark.parametrize(
    "path",
    [
        "/file=/etc/passwd",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file//etc/passwd",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/proxy=http://127.0.0.1:1/",
        "/static/../../../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd",
        "/gradio_api/queue/../file=/etc/passwd",
        "/gradio_api/info",
        "/gradio_api/openapi.json",
        "/monitoring",
        "/docs",
        "/openapi.json",
    ],
)
def test_other_files_and_routes_are_refused(served, path):
    status, body = ask(served, path)
    assert status in (403, 404)
    assert b"root:" not in body


@pytest.mark.parametrize("path", ["/gradio_api/upload", "/gradio_api/run/answer", "/login"])
def test_other_posts_are_refused(served, path):
    assert ask(served, path, method="POST")[0] == 403


def test_a_page_of_another_name_is_refused(served):
    """A name that somebody else points to 127.0.0.1 does not reach the app."""
    port = urlsplit(served.address).port
    assert ask(served, "/", host=f"evil.example:{port}")[0] == 403
    assert ask(served, "/", host=f"localhost:{port}")[0] == 200


def test_the_page_names_no_other_server_to_load_from(served):
    _, body = ask(served, "/")
    text = body.decode()
    loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(\S+?)[\"'> ]", text)
    assert loaded
    assert [one for one in loaded if one.startswith(("http:", "https:", "//"))] == []
    _, theme = ask(served, "/theme.css")
    assert b"//fonts." not in theme


@pytest.mark.parametrize(
    ("path", "host", "local", "shared"),
    [
        ("/", "127.0.0.1", True, True),
        ("/", "any.example", False, True),
        ("/", "", False, True),
        ("/config", "localhost", True, True),
        ("/gradio_api/queue/join", "127.0.0.1", True, True),
        ("/gradio_api/upload", "127.0.0.1", False, False),
        ("/static/../config", "127.0.0.1", False, False),
    ],
)
def test_own_routes(path, host, local, shared):
    async def app(scope, receive, send):
        pass

    assert OwnRoutes(app, ("127.0.0.1", "localhost")).allows(path, host) is local
    assert OwnRoutes(app, ()).allows(path, host) is shared


def test_a_port_in_use_is_a_sentence():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(IsoglotError, match=rf"127.0.0.1:{port} cannot be opened .*--port"):
            bind("127.0.0.1", port)


def test_what_is_shared(session):
    assert sharing_note(session, "127.0.0.1") is None
    assert sharing_note(session, "localhost") is None
    said = sharing_note(session, "0.0.0.0")  # noqa: S104
    assert said is not None
    assert "first, second" in said
    assert "anybody" in said
    for file in (*session.pairs_files, *session.dictionary_files):
        assert str(file) in said
    assert session.corpus is not None
    assert str(session.corpus.folder) in said


def test_the_command_prints_its_address_and_ends_with_control_c(models, files):
    command = [sys.executable, "-m", "isoglot", "explore", models[0], "--no-browser", "--port=0"]
    run = subprocess.Popen(
        [*map(str, command), "--pairs", str(files / "ar-zh.tsv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert run.stdout is not None
    line = run.stdout.readline()
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert address, line
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=20)
        connection.request("GET", "/")
        assert b"Isoglot explore" in connection.getresponse().read()
        # an open page holds such a connection
        connection.request("GET", "/gradio_api/heartbeat/abc")
        assert connection.getresponse().status == 200
    finally:
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    connection.close()
    assert run.returncode == 0, err
    assert out == ""
    assert "Traceback" not in err
