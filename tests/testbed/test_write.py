"""The raw files: their number, their lines, and the wall between training and test."""

from __future__ import annotations

from isoglot.testbed import NOBODY, World, write


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_files_have_the_lines_asked_for(tmp_path):
    calls = []
    write(
        tmp_path,
        seed=1,
        languages=("en", "de", "zh"),
        sentences=200,
        pairs=120,
        test_pairs=40,
        progress=lambda *call: calls.append(call),
    )
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert names == [
        "dictionaries/en-de.txt", "dictionaries/en-zh.txt", "pairs/en-de.tsv", "pairs/en-zh.tsv",
        "test/en-de.tsv", "test/en-zh.tsv", "text/de.txt", "text/en.txt", "text/zh.txt",
    ]  # fmt: skip
    assert [number for _, number, _ in calls] == [*range(1, 10)]
    assert {total for _, _, total in calls} == {9}
    text = lines(tmp_path / "text" / "zh.txt")
    assert sum(bool(line) for line in text) == 200
    assert "" in text
    for name, wanted in (("pairs", 120), ("test", 40)):
        rows = [line.split("\t") for line in lines(tmp_path / name / "en-zh.tsv")]
        assert len(rows) == wanted
        assert {len(row) for row in rows} == {2}


def test_test_translations_are_new_and_parallel(tmp_path):
    write(tmp_path, languages=("en", "tr", "sw"), sentences=10, pairs=2000, test_pairs=300)
    trained = {line.split("\t")[0] for line in lines(tmp_path / "pairs" / "en-tr.tsv")}
    tested = [line.split("\t")[0] for line in lines(tmp_path / "test" / "en-tr.tsv")]
    assert not trained & {*tested}
    assert len({*tested}) == len(tested) == 300
    assert tested == [line.split("\t")[0] for line in lines(tmp_path / "test" / "en-sw.tsv")]


def test_writing_again_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / name, languages=("en", "ru"), sentences=50, pairs=20, test_pairs=5)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "text").iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    assert {*one} == {"en.txt", "ru.txt"}


def test_languages_that_are_kept_apart_never_say_the_same(tmp_path):
    write(
        tmp_path,
        languages=("en", "es"),
        sentences=4000,
        pairs=1,
        test_pairs=300,
        concepts=20,
        shares=("en", "es", NOBODY),
    )
    world = World(0, concepts=20)
    said = {language: set(lines(tmp_path / f"text/{language}.txt")) for language in ("en", "es")}
    drawn = list(world.pairs("en", "es", 30_000, stream="anything"))
    assert sum(one in said["en"] or other in said["es"] for one, other in drawn) > 1000
    assert not any(one in said["en"] and other in said["es"] for one, other in drawn)
    tested = [line.split("\t") for line in lines(tmp_path / "test/en-es.tsv")]
    assert len(tested) == 300
    assert not any(one in said["en"] or other in said["es"] for one, other in tested)
