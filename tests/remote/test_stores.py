from __future__ import annotations

import time
from collections import Counter

import pytest

from isoglot.errors import FetchError
from isoglot.remote.faults import describe_faults, record_fault, report_faults
from isoglot.remote.stores import read_range, remote_config
from tests.remote.servers import Traffic, flaky_proxy


def test_faults_are_survived_and_counted(store, web):
    store.files["/a.bin"] = bytes(range(200)) * 50
    told: list[str] = []
    traffic = Traffic(every=6, silence_seconds=1.3)
    with flaky_proxy(web, traffic) as address, report_faults(told.append):
        for start in range(0, 10_000, 500):
            found = read_range(f"{address}/a.bin", start, start + 500)
            assert found == store.files["/a.bin"][start : start + 500]
    assert traffic.faults >= 3
    (note,) = told
    assert note.startswith(f"{traffic.faults} requests to remote files failed and had to be")
    for reason in ("status 500", "the connection broke", "the server fell silent"):
        assert reason in note


@pytest.mark.parametrize("kind", ["web", "nothing"])
def test_a_store_that_always_fails_ends_with_a_sentence(kind, store, web, monkeypatch):
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "3")
    store.files["/a.bin"] = b"x" * 100
    started = time.monotonic()
    with flaky_proxy(web, Traffic(every=1, silence_seconds=1.3)) as address:
        asked = address if kind == "web" else "http://127.0.0.1:9"
        with pytest.raises(FetchError) as caught:
            read_range(f"{asked}/a.bin", 0, 10)
    assert time.monotonic() - started < 10
    assert str(caught.value).startswith(f"{asked}/a.bin: cannot be read (")
    assert "asked 3 times" in str(caught.value)


def test_what_stays_is_said_at_once(store, web):
    with pytest.raises(FetchError, match=r"/b.bin: there is no such file or folder"):
        read_range(f"{web}/b.bin", 0, 10)
    store.forbidden = True
    with pytest.raises(FetchError, match=r"/a.bin: access is forbidden \(status 403\)"):
        read_range(f"{web}/a.bin", 0, 10)
    assert len(store.requests) == 2


def test_a_server_that_ignores_ranges_is_noticed(store, web, monkeypatch):
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "2")
    store.ranges = False
    store.files["/a.bin"] = b"x" * 100
    with pytest.raises(FetchError, match=r"100 of 10 bytes came; asked 2 times"):
        read_range(f"{web}/a.bin", 5, 15)


def test_a_missing_package_is_named():
    with pytest.raises(FetchError, match=r"^gs://b/k: .*pip install gcsfs \(or isoglot\[gcs\]\)"):
        read_range("gs://b/k", 0, 1)


def test_the_environment_sets_tries_and_silence(monkeypatch):
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "7")
    assert (remote_config().max_tries, remote_config().read_seconds) == (7, 1.0)
    monkeypatch.setenv("ISOGLOT_REMOTE_TRIES", "many")
    with pytest.raises(FetchError, match="ISOGLOT_REMOTE_TRIES='many': is not a number"):
        remote_config()


def test_faults_outside_a_report_are_not_kept():
    record_fault("nobody listens")
    told: list[str] = []
    with report_faults(told.append):
        pass
    assert told == []
    assert describe_faults(Counter(["x"])).startswith("1 request to remote files failed")
