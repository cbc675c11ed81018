from __future__ import annotations

import hashlib
import lzma
import re

import pytest

from isoglot.corpus.reading.registry import READERS
from isoglot.errors import FetchError
from isoglot.fetching.registry import entries, expand, parse_name
from isoglot.tasks import TASKS, find_task
from isoglot.tasks.layouts import FileTask, compile_pattern


def test_every_task_has_an_entry():
    assert set(TASKS) <= set(entries())


def test_entries_are_complete():
    formats = {reader.name for reader in READERS}
    for name, entry in entries().items():
        assert entry.license, name
        assert entry.page or entry.how, name
        assert bool(entry.parts) != bool(entry.how), name
        assert (
            entry.format in formats
            or entry.kind in {"test", "knowledge", "dictionary"}
            or entry.how
        )
        for part in entry.parts:
            assert bool(part.url) != bool(part.hub), name
            assert part.to or part.keep, name
            assert part.sha256 is None or re.fullmatch("[0-9a-f]{64}", part.sha256), name
            for size, sha256 in part.sums.values():
                assert size > 0
                assert re.fullmatch("[0-9a-f]{64}", sha256), name


def test_sums_belong_to_places_that_are_fetched():
    for name, entry in entries().items():
        if entry.parts and not entry.arguments:
            places = {part.to for part in expand(parse_name(name))}
            known = {place for part in entry.parts for place in part.sums}
            assert known <= places, name


def test_templates_are_filled():
    given = {"opus": "opus:Tatoeba/en-fr", "newscrawl": "newscrawl:de/2018"}
    for name, entry in entries().items():
        if entry.how:
            continue
        full = given.get(name) or f"{name}{':en-fr' if '{pair}' in entry.arguments else ''}"
        full += ":sw" if entry.arguments == "{language}" else ""
        for part in expand(parse_name(full)):
            assert "{" not in part.url + part.hub, name
            assert part.keep or "{" not in part.to, name


def test_no_two_parts_of_an_entry_have_one_address():
    for name, entry in entries().items():
        if entry.parts and not entry.arguments:
            urls = [part.url for part in expand(parse_name(name)) if part.url]
            assert len(urls) == len(set(urls)), name


def test_places_of_test_sets_are_those_that_tasks_read():
    """Files that are not unpacked have names that a layout or companion of the task matches."""
    for name in TASKS:
        task = find_task(name)
        if not isinstance(task, FileTask) or entries()[name].how:
            continue
        patterns = [*(one.pattern for one in task.layouts), *task.companions]
        known = [compile_pattern(pattern) for pattern in patterns]
        for part in expand(parse_name(name)):
            if not part.keep:
                assert any(one.fullmatch(part.to) for one in known), (name, part.to)


def test_names_with_arguments():
    request = parse_name("opus:Tatoeba/sw-en")
    assert request.sides == ("sw", "en")
    assert (request.values["one"], request.values["two"]) == ("en", "sw")
    assert parse_name("opus:Tatoeba", "en-sw").name == "opus:Tatoeba/en-sw"
    assert parse_name("opus:Tatoeba/en-sw@v1").values["version"] == "v1"
    assert parse_name("wikipedia", "sw").values["database"] == "swwiki"
    assert parse_name("wikipedia:zh-min-nan").values["wiki"] == "zh-min-nan"
    assert parse_name("cc100:zh").values["language"] == "zh-Hans"
    assert parse_name("cc100", "zh_Hant").values["language"] == "zh-Hant"
    challenge = parse_name("tatoeba-challenge:en-sw").values
    assert (challenge["one3"], challenge["two3"]) == ("eng", "swa")
    assert parse_name("europarl:en-de").values["with_english"] == "de-en"
    assert parse_name("iitb").sides == ("en", "hi")
    assert parse_name("tatoeba").sides == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tatoba", "did you mean 'tatoeba'"),
        ("tatoeba:sw", "takes nothing after a colon"),
        ("opus", "Write opus:CORPUS/PAIR"),
        ("opus:Tatoeba/en", "Write opus:CORPUS/PAIR"),
        ("opus:../../x/en-sw", "Write opus:CORPUS/PAIR"),
        ("opus:Tatoeba/en-sw@../x", "Write opus:CORPUS/PAIR"),
        ("cc100:", "Write cc100:LANGUAGE"),
        ("cc100:sw@v2", "Write cc100:LANGUAGE"),
        ("cc100:s w", "Write cc100:LANGUAGE"),
    ],
)
def test_names_that_are_none(name, message):
    with pytest.raises(FetchError, match=message):
        parse_name(name)


@pytest.mark.parametrize(
    ("given", "fetched"),
    [
        ("sw", "sw"),
        ("swa", "sw"),
        ("zh", "zh-Hans"),
        ("zh-Hans", "zh-Hans"),
        ("hi_Latn", "hi_rom"),
        ("bn_rom", "bn_rom"),
    ],
)
def test_languages_are_spelled_as_the_publisher_does(given, fetched):
    assert parse_name(f"cc100:{given}").values["language"] == fetched


def test_a_language_that_a_data_set_lacks_is_refused():
    with pytest.raises(FetchError, match=r"cc100 has no 'zz'. Its languages: af, am, ar, "):
        parse_name("cc100:zz")
    with pytest.raises(FetchError, match=r"multiun has no 'sw'. Its languages: ar, de, en, "):
        parse_name("multiun:en-sw")


def test_only_some_languages():
    parts = expand(parse_name("tatoeba"), ("sw", "de"))
    assert sorted(part.to for part in parts) == [
        *("tatoeba/v1/tatoeba.deu-eng.deu", "tatoeba/v1/tatoeba.deu-eng.eng"),
        *("tatoeba/v1/tatoeba.swh-eng.eng", "tatoeba/v1/tatoeba.swh-eng.swh"),
    ]
    assert len(expand(parse_name("xnli"), ("sw",))) == 2
    with pytest.raises(FetchError, match=r"has none of xx; its languages are ar, de, el"):
        expand(parse_name("xquad"), ("xx",))


def test_the_tatoeba_hashes_are_those_of_the_real_files(data_folder):
    compared = 0
    for part in expand(parse_name("tatoeba")):
        pair, side = re.fullmatch(r"tatoeba/v1/tatoeba\.(\w+-\w+)\.(\w+)", part.to).groups()  # type: ignore[union-attr]
        path = data_folder / f"eval/tatoeba/{pair}.tsv.xz"
        if part.sha256 is None or not path.exists():
            continue
        rows = lzma.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")
        column = 1 if side == "eng" else 0
        content = "".join(f"{row.split(chr(9))[column]}\n" for row in rows).encode()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (part.size, part.sha256)
        compared += 1
    assert compared == 42
