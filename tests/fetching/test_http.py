from __future__ import annotations

import email.utils
import socket
import time

import pytest

from isoglot.errors import FetchError, RecipeError
from isoglot.fetching.download import Remote, download
from isoglot.fetching.http import FetchConfig, mirrored
from tests.fetching.conftest import quick
from tests.fetching.servers import Hosted

TEXT = b"some text\n" * 100


def get(url, tmp_path, config=None) -> bytes:
    download(Remote(url=url), tmp_path / "file", config or quick())
    return (tmp_path / "file").read_bytes()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(server, tmp_path, status):
    url = server.host("/file", Hosted(TEXT, statuses=[(status, {}), (status, {})]))
    assert get(url, tmp_path) == TEXT
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_named(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, statuses=[(503, {})], forever=True))
    with pytest.raises(FetchError, match=r"/file: cannot be downloaded \(status 503 .*--mirror"):
        get(url, tmp_path)
    assert len(server.requests) == 3


def test_the_wait_that_a_server_asks_for_is_kept(server, tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    soon = email.utils.formatdate(time.time() + 50, usegmt=True)
    for said in ("7", soon, "86400", "soon"):
        url = server.host("/file", Hosted(TEXT, statuses=[(429, {"Retry-After": said})]))
        assert get(url, tmp_path) == TEXT
    assert (waits[0], waits[2], waits[3]) == (7, 120, 0)
    assert 40 < waits[1] <= 50


def test_waits_double(server, tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    url = server.host("/file", Hosted(TEXT, statuses=[(503, {})], forever=True))
    with pytest.raises(FetchError, match="asked 9 times"):
        get(url, tmp_path, FetchConfig(max_tries=9, backoff_seconds=1))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "HF_TOKEN"),
        (403, "in a browser"),
        (404, "new address"),
        (410, "removed"),
        (451, "hand"),
    ],
)
def test_a_refusal_is_told_at_once(server, tmp_path, status, remedy):
    url = server.host("/file", Hosted(TEXT, statuses=[(status, {})], forever=True))
    with pytest.raises(FetchError, match=rf"^{url}: the server answers {status} .*{remedy}"):
        get(url, tmp_path)
    assert len(server.requests) == 1


def test_redirects_are_followed_but_not_in_a_circle(server, tmp_path):
    url = server.host("/file", TEXT)
    once = server.host("/once", Hosted(statuses=[(302, {"Location": url})]))
    assert get(once, tmp_path) == TEXT
    circle = server.host("/circle", Hosted(statuses=[(302, {"Location": "/circle"})], forever=True))
    with pytest.raises(FetchError, match="/circle: the server redirects in a circle"):
        get(circle, tmp_path)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_a_redirect_out_of_the_web_is_refused(server, tmp_path, target):
    url = server.host("/file", Hosted(statuses=[(302, {"Location": target})], forever=True))
    with pytest.raises(FetchError, match="/file: "):
        get(url, tmp_path)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    "url", ["ftp://example.org/a", "http://", "https://[bad/x", "http://host:port/x", "file:///x"]
)
def test_what_is_no_address_is_refused(tmp_path, url):
    with pytest.raises(FetchError, match=r"is not (an|a web) address"):
        get(url, tmp_path)


def test_a_page_instead_of_a_file_is_refused(server, tmp_path):
    url = server.host("/a.zip", Hosted(b"<html>Log in", kind="text/html; charset=utf-8"))
    with pytest.raises(FetchError, match=r"/a.zip: the server sends a web page .*browser"):
        get(url, tmp_path)


def test_nobody_at_the_address(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file"
    with pytest.raises(FetchError, match=r"connection is refused; asked 3 times"):
        get(url, tmp_path)


def test_a_mirror_replaces_hosts(server, tmp_path, monkeypatch):
    server.host("/data/files.example/deep/a.txt", TEXT)
    address = "https://files.example/deep/a.txt"
    assert get(address, tmp_path, quick(f"{server.url}/data/")) == TEXT
    monkeypatch.setenv("ISOGLOT_MIRROR", "http://m.example")
    assert mirrored(address, FetchConfig()) == "http://m.example/files.example/deep/a.txt"


def test_a_proxy_of_the_environment_is_asked(server, tmp_path, monkeypatch):
    server.host("http://nowhere.example/a.txt", TEXT)
    monkeypatch.setenv("http_proxy", server.url)
    assert get("http://nowhere.example/a.txt", tmp_path) == TEXT


def test_settings_have_ranges():
    with pytest.raises(RecipeError, match="max_tries"):
        FetchConfig(max_tries=0)
