from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from isoglot.errors import FetchError, WriteError
from isoglot.fetching.fetch import describe, fetch
from isoglot.fetching.http import FetchConfig
from isoglot.fetching.plan import FetchPlan
from tests.fetching.archives import zip_of
from tests.fetching.conftest import quick
from tests.fetching.servers import Hosted

MOSES = zip_of(
    {
        "Tatoeba.en-sw.en": b"one\ntwo\n",
        "Tatoeba.en-sw.sw": b"moja\nmbili\n",
        "README": b"about\n",
        "LICENSE": b"CC BY\n",
    }
)
NAME = "opus:Tatoeba/en-sw@v1"
PATH = "/object.pouta.csc.fi/OPUS-Tatoeba/v1/moses/en-sw.txt.zip"
EN, SW = (f"opus/Tatoeba/v1/Tatoeba.en-sw.{side}" for side in ("en", "sw"))


def quiet(plan: FetchPlan) -> None:
    pass


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_an_archive_is_fetched_unpacked_and_recorded(server, config, tmp_path):
    server.host(PATH, MOSES)
    plans: list[FetchPlan] = []
    fetched = fetch(NAME, tmp_path, config=config, announce=plans.append)
    assert [path.read_text() for path in fetched.files] == ["one\ntwo\n", "moja\nmbili\n"]
    record = ".fetched/opus_Tatoeba_en-sw@v1-"
    (written,) = (name for name in files_below(tmp_path) if name.startswith(record))
    assert files_below(tmp_path) == {EN, SW, written}
    told = json.loads((tmp_path / written).read_text())
    assert told["license"] == "per corpus, see the page and the LICENSE file"
    assert "License: per corpus" in describe(plans[0])


def test_the_license_is_shown_before_the_first_byte(server, config, tmp_path, capsys):
    server.host(PATH, MOSES)
    asked = []
    fetch(NAME, tmp_path, config=config, announce=lambda _: asked.append(len(server.requests)))
    assert asked == [0]
    shutil.rmtree(tmp_path / ".fetched")
    fetch(NAME, tmp_path, config=config)
    assert "License: per corpus" in capsys.readouterr().err


def test_what_is_there_is_verified_without_the_network(server, config, tmp_path):
    server.host(PATH, MOSES)
    first = fetch(NAME, tmp_path, config=config, announce=quiet)
    server.files.clear()
    again = fetch(NAME, tmp_path, config=config)
    assert (first.was_there, again.was_there, again.files) == (False, True, first.files)
    assert len(server.requests) == 1


def test_a_damaged_file_is_fetched_again(server, config, tmp_path):
    server.host(PATH, MOSES)
    fetch(NAME, tmp_path, config=config, announce=quiet)
    (tmp_path / EN).write_text("ONE\ntwo\n")
    fetched = fetch(NAME, tmp_path, config=config, announce=quiet)
    assert not fetched.was_there
    assert (tmp_path / EN).read_text() == "one\ntwo\n"


def test_a_touched_file_is_looked_at_and_kept(server, config, tmp_path):
    server.host(PATH, MOSES)
    fetch(NAME, tmp_path, config=config, announce=quiet)
    (tmp_path / EN).touch()
    assert fetch(NAME, tmp_path, config=config, announce=quiet, verify=False).was_there
    (tmp_path / EN).write_text("ONE\ntwo\n")
    assert not fetch(NAME, tmp_path, config=config, announce=quiet, verify=False).was_there


def test_a_file_that_the_publisher_changed_is_refused_until_update(server, config, tmp_path):
    server.host(PATH, MOSES)
    fetch(NAME, tmp_path, config=config, announce=quiet)
    (tmp_path / EN).unlink()
    new = {"T.en-sw.en": b"uno\n", "T.en-sw.sw": b"moja\n"}
    server.host(PATH, zip_of(new))
    with pytest.raises(FetchError, match=r"publisher has changed the file .* Add update=True"):
        fetch(NAME, tmp_path, config=config, announce=quiet)
    fetched = fetch(NAME, tmp_path, config=config, announce=quiet, update=True)
    assert fetched.files[0].read_text() == "uno\n"
    assert fetch(NAME, tmp_path, config=config, announce=quiet).was_there


def test_finished_files_of_many_are_not_fetched_again(server, config, tmp_path, without_sums):
    root = (
        "/raw.githubusercontent.com/google-deepmind/xquad/7d30520c717524000f0d9d2f9c10a069acd9d285"
    )
    server.host(f"{root}/xquad.de.json", b'{"data": []}')
    with pytest.raises(FetchError, match=r"xquad.el.json: the server answers 404"):
        fetch("xquad", tmp_path, languages=("de", "el"), config=config, announce=quiet)
    server.host(f"{root}/xquad.el.json", b'{"data": [1]}')
    server.requests.clear()
    fetched = fetch("xquad", tmp_path, languages=("de", "el"), config=config, announce=quiet)
    assert [path.name for path in fetched.files] == ["xquad.de.json", "xquad.el.json"]
    assert [path.rpartition("/")[2] for _, path, _ in server.requests] == ["xquad.el.json"]
    # other languages are another request
    server.host(f"{root}/xquad.en.json", b'{"data": [2]}')
    more = fetch("xquad", tmp_path, languages=("de", "en"), config=config, announce=quiet)
    assert [path.name for path in more.files] == ["xquad.de.json", "xquad.en.json"]


def test_an_interrupted_download_continues(server, tmp_path):
    config = quick(server.url, tries=1)
    server.host(PATH, Hosted(MOSES, cuts=[len(MOSES) // 2]))
    with pytest.raises(FetchError, match="bytes are kept"):
        fetch(NAME, tmp_path, config=config, announce=quiet)
    fetched = fetch(NAME, tmp_path, config=config, announce=quiet)
    assert fetched.files[0].read_text() == "one\ntwo\n"
    assert server.asked("range")[-1] == f"bytes={len(MOSES) // 2}-"
    assert not list((tmp_path / ".fetched").glob("*.downloads"))


def test_two_at_once_download_once(server, tmp_path):
    config = FetchConfig(mirror=server.url, read_seconds=5, backoff_seconds=0)
    server.host(PATH, Hosted(MOSES, silence=0.3))
    results, faults = [], []

    def run() -> None:
        try:
            results.append(fetch(NAME, tmp_path, config=config, announce=quiet))
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sorted(result.was_there for result in results) == [False, True, True]
    assert len(server.requests) == 1


def test_wrong_sizes_and_bytes_of_known_files(server, config, tmp_path):
    path = "/dl.fbaipublicfiles.com/MLQA/MLQA_V1.zip"
    server.host(path, MOSES)
    with pytest.raises(FetchError, match=r"MLQA_V1.zip: has \d+ bytes there, and 75,719,050 are"):
        fetch("mlqa", tmp_path, config=config, announce=quiet)
    server.host(path, Hosted(MOSES, chunked=True))
    with pytest.raises(FetchError, match="75,719,050 are expected"):
        fetch("mlqa", tmp_path, config=config, announce=quiet)
    assert files_below(tmp_path) == set()


def test_a_disk_without_room_is_found_before_the_first_request(
    server, config, tmp_path, monkeypatch
):
    used = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: used._replace(free=100_000_000))
    with pytest.raises(WriteError, match=r"xnli: 0.48 GB are to be written .* 0.10 GB are free"):
        fetch("xnli", tmp_path, config=config, announce=quiet)
    assert server.requests == []


@pytest.mark.parametrize("size", [0, 3, 100, len(MOSES) - 1, len(MOSES), len(MOSES) + 100])
def test_a_disk_that_fills_up_is_a_sentence(server, config, tmp_path, size):
    """Writing fails after so many bytes of a file; the same command continues later."""
    server.host(PATH, MOSES)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(WriteError, match=r"cannot be written \(File too large\)"):
            fetch(NAME, tmp_path, config=config, announce=quiet)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    fetched = fetch(NAME, tmp_path, config=config, announce=quiet)
    assert fetched.files[0].read_text() == "one\ntwo\n"
    assert {path.name for path in (tmp_path / ".fetched").iterdir()} == {
        next((tmp_path / ".fetched").glob("*.json")).name
    }


@pytest.mark.slow
def test_a_killed_process_is_continued(server, tmp_path):
    """SIGKILL in the middle of a download: its lock is taken over, its bytes are kept."""
    random = os.urandom(3_000_000)
    url = server.host("/big.txt", Hosted(random, silence=30))
    code = f"import isoglot; isoglot.fetch({url!r}, {str(tmp_path)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not any(path.stat().st_size > 10**6 for path in tmp_path.rglob("*.partial")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    server.files["/big.txt"].silence = 0
    fetched = fetch(url, tmp_path, config=quick(), announce=quiet)
    assert fetched.files[0].read_bytes() == random
    assert server.asked("range")[-1] is not None


def test_what_has_to_be_obtained_by_hand(config, tmp_path):
    folder = tmp_path / "new"
    known = {"conll": "NIST", "cls": "zenodo", "retrieval": "pairs=en-sw", "hf:": "hf:OWNER"}
    for name, word in known.items():
        with pytest.raises(FetchError, match=rf"{name}.* .*{word}"):
            fetch(name, folder, config=config, announce=quiet)
    assert not folder.exists()


def test_an_address_is_fetched_to_a_place_of_its_host(server, tmp_path):
    url = server.host("/some/text%20one.txt.gz", gzip.compress(b"a\n"))
    fetched = fetch(url, tmp_path, config=quick(), announce=quiet)
    assert [path.relative_to(tmp_path).as_posix() for path in fetched.files] == [
        "web/127.0.0.1/text_one.txt.gz"
    ]
    url = server.host("/pairs.tar.gz", Hosted(gzip.compress(b"no tar")))
    with pytest.raises(FetchError, match=r"pairs.tar.gz: the archive is damaged"):
        fetch(url, tmp_path, config=quick(), announce=quiet)
    url = server.host("/cut.txt.gz", gzip.compress(b"a\n" * 1000)[:-9])
    with pytest.raises(FetchError, match=r"cut.txt.gz: the download is not the expected file"):
        fetch(url, tmp_path, config=quick(), announce=quiet)


def test_a_record_that_cannot_be_read_is_made_again(server, config, tmp_path):
    server.host(PATH, MOSES)
    fetch(NAME, tmp_path, config=config, announce=quiet)
    (record,) = (tmp_path / ".fetched").glob("*.json")
    for bad in ("{", "[]", '{"version": 99}', '{"version": 1, "pieces": {"u": {}}}'):
        record.write_text(bad)
        assert not fetch(NAME, tmp_path, config=config, announce=quiet).was_there
    assert fetch(NAME, tmp_path, config=config, announce=quiet).was_there
