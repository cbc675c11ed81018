from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path

import pytest

from isoglot.errors import FetchError, WriteError
from isoglot.fetching.download import Remote, download, remote_size
from tests.fetching.conftest import quick
from tests.fetching.servers import Hosted

TEXT = b"".join(b"line %d of a file that is large enough\n" % number for number in range(20_000))
OTHER = TEXT[::-1]
HALF = len(TEXT) // 2


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def leftovers(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir() if one != path)


def test_a_file_comes_whole_with_its_progress(server, tmp_path):
    path, seen = tmp_path / "deep/file.txt", []
    url = server.host("/file.txt", TEXT)
    found = download(
        Remote(url=url, size=len(TEXT), sha256=sha(TEXT)),
        path,
        quick(),
        lambda *one: seen.append(one),
    )
    assert (found, path.read_bytes()) == (sha(TEXT), TEXT)
    assert seen[0] == ("file.txt", 0, len(TEXT))
    assert seen[-1] == ("file.txt", len(TEXT), len(TEXT))
    assert leftovers(path) == []
    assert server.asked("accept-encoding") == ["identity"]


def test_a_cut_download_continues_where_it_stopped(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, cuts=[HALF, 1000, 5]))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT
    places = [None, *(f"bytes={place}-" for place in (HALF, HALF + 1000, HALF + 1005))]
    assert server.asked("range") == places
    assert server.asked("if-range") == [None, '"one"', '"one"', '"one"']


def test_any_number_of_cuts_is_survived_while_bytes_come(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, cuts=[len(TEXT) // 20] * 19))
    download(Remote(url=url), tmp_path / "file", quick(tries=2))
    assert (tmp_path / "file").read_bytes() == TEXT


def test_another_run_continues_what_an_earlier_one_left(server, tmp_path):
    url, path = server.host("/file", Hosted(TEXT, cuts=[HALF])), tmp_path / "file"
    with pytest.raises(FetchError, match=rf"{HALF:,} bytes are kept. Run the command again"):
        download(Remote(url=url), path, quick(tries=1))
    assert not path.exists()
    download(Remote(url=url), path, quick(tries=1))
    assert path.read_bytes() == TEXT
    assert server.asked("range")[-1] == f"bytes={HALF}-"


def test_parts_of_two_versions_are_never_joined(server, tmp_path):
    now = Hosted(OTHER, etag='"two"')
    url = server.host("/file", Hosted(TEXT, cuts=[HALF], then=now))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == OTHER


def test_a_server_that_joins_versions_is_found_out_by_the_hash(server, tmp_path):
    now = Hosted(OTHER, etag='"two"', if_range=False)
    url = server.host("/file", Hosted(TEXT, cuts=[HALF], then=now))
    download(Remote(url=url, sha256=sha(OTHER)), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == OTHER


def test_without_a_validator_or_hash_nothing_is_continued(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, etag=None, cuts=[HALF]))
    download(Remote(url=url), tmp_path / "file", quick())
    assert server.asked("range") == [None, None]
    server.requests.clear()
    url = server.host("/known", Hosted(TEXT, etag=None, cuts=[HALF]))
    download(Remote(url=url, sha256=sha(TEXT)), tmp_path / "known", quick())
    assert server.asked("range") == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("etag", ['W/"one"', None])
def test_a_weak_validator_is_none(server, tmp_path, etag):
    url = server.host("/file", Hosted(TEXT, etag=etag, cuts=[HALF]))
    download(Remote(url=url), tmp_path / "file", quick())
    assert server.asked("range") == [None, None]


def test_a_server_without_ranges_gives_it_again(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, ranges=False, cuts=[HALF]))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_part_that_begins_elsewhere_is_not_taken(server, tmp_path):
    wrong = Hosted(TEXT, shift=7, then=Hosted(TEXT))
    url = server.host("/file", Hosted(TEXT, cuts=[HALF], then=wrong))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_server_that_gives_a_slice_at_a_time_is_asked_for_all(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, cuts=[HALF], slices=HALF // 3))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT
    assert len(server.requests) == 5


def test_a_part_of_another_address_is_not_continued(server, tmp_path):
    one = server.host("/one", Hosted(TEXT, cuts=[HALF]))
    with pytest.raises(FetchError):
        download(Remote(url=one), tmp_path / "file", quick(tries=1))
    two = server.host("/two", OTHER)
    download(Remote(url=two), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == OTHER


def test_a_whole_part_needs_only_its_name(server, tmp_path):
    """The process was killed between the last byte and the renaming."""
    url = server.host("/file", Hosted(TEXT, cuts=[HALF]))
    with pytest.raises(FetchError):
        download(Remote(url=url), tmp_path / "file", quick(tries=1))
    (tmp_path / "file.partial").write_bytes(TEXT)
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT


def test_a_length_that_is_too_large_is_an_error_after_some_tries(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, length=len(TEXT) + 99, ranges=False))
    with pytest.raises(FetchError, match=r"/file: cannot be downloaded .*broke.*asked 3 times"):
        download(Remote(url=url), tmp_path / "file", quick())
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("length", [HALF, len(TEXT) + 99])
def test_a_length_that_is_not_the_known_one_is_refused_at_once(server, tmp_path, length):
    url = server.host("/file", Hosted(TEXT, length=length))
    with pytest.raises(FetchError, match=rf"has {length:,} bytes there, and {len(TEXT):,} are"):
        download(Remote(url=url, size=len(TEXT)), tmp_path / "file", quick())
    assert len(server.requests) == 1


def test_more_bytes_than_known_are_not_written(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, chunked=True))
    with pytest.raises(FetchError, match=rf"and {HALF:,} are expected. Nothing is kept"):
        download(Remote(url=url, size=HALF), tmp_path / "file", quick())
    assert list(tmp_path.iterdir()) == []


def test_a_body_of_unknown_length_is_taken(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, chunked=True))
    download(Remote(url=url), tmp_path / "file", quick())
    assert (tmp_path / "file").read_bytes() == TEXT


def test_wrong_bytes_are_refused_and_not_kept(server, tmp_path):
    url = server.host("/file", OTHER)
    with pytest.raises(FetchError, match=r"not the expected one \(SHA-256 .*publisher has changed"):
        download(Remote(url=url, size=len(TEXT), sha256=sha(TEXT)), tmp_path / "file", quick())
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_left(server, tmp_path):
    url = server.host("/file", Hosted(TEXT, ranges=False, silence=3))
    start = time.monotonic()
    with pytest.raises(FetchError, match=r"the server fell silent; asked 2 times"):
        download(Remote(url=url), tmp_path / "file", quick(tries=2))
    assert time.monotonic() - start < 2.5


def test_a_full_disk_is_found_before_the_first_byte(server, tmp_path, monkeypatch):
    url = server.host("/file", TEXT)
    used = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: used._replace(free=1000))
    with pytest.raises(WriteError, match=r"/file: 0.00 GB are to be written .*--out"):
        download(Remote(url=url), tmp_path / "file", quick())
    assert not (tmp_path / "file.partial").exists()


def test_the_size_is_asked_without_downloading(server):
    url = server.host("/file", TEXT)
    assert remote_size(Remote(url=url), quick()) == len(TEXT)
    assert [method for method, _, _ in server.requests] == ["HEAD"]
