"""The raw files: their number, their lines, and the wall between training and test."""

from __future__ import annotations

from isoglot.testbed import NO_LANGUAGE, World, write_raw_files


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_files_have_the_lines_asked_for(tmp_path):
    write_raw_files(
        tmp_path,
        seed=1,
        languages=("en", "de", "zh"),
        num_sentences=200,
        num_pairs=120,
        num_test_pairs=40,
    )
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert names == [
        "dictionaries/en-de.txt", "dictionaries/en-zh.txt", "pairs/en-de.tsv", "pairs/en-zh.tsv",
        "test/en-de.tsv", "test/en-zh.tsv", "text/de.txt", "text/en.txt", "text/zh.txt",
    ]  # fmt: skip
    text = lines(tmp_path / "text" / "zh.txt")
    assert sum(bool(line) for line in text) == 200
    assert "" in text
    for name, wanted in (("pairs", 120), ("test", 40)):
        rows = [line.split("\t") for line in lines(tmp_path / name / "en-zh.tsv")]
        assert len(rows) == wanted
        assert {len(row) for row in rows} == {2}


def test_test_translations_are_new_and_parallel(tmp_path):
    write_raw_files(
        tmp_path, languages=("en", "tr", "sw"), num_sentences=10, num_pairs=2000, num_test_pairs=300
    )
    trained = {line.split("\t")[0] for line in lines(tmp_path / "pairs" / "en-tr.tsv")}
    tested = [line.split("\t")[0] for line in lines(tmp_path / "test" / "en-tr.tsv")]
    assert not trained & {*tested}
    assert len({*tested}) == len(tested) == 300
    assert tested == [line.split("\t")[0] for line in lines(tmp_path / "test" / "en-sw.tsv")]


def test_writing_again_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_raw_files(
            tmp_path / name,
            languages=("en", "ru"),
            num_sentences=50,
            num_pairs=20,
            num_test_pairs=5,
        )
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "text").iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    assert {*one} == {"en.txt", "ru.txt"}


def test_languages_that_are_kept_apart_never_say_the_same(tmp_path):
    write_raw_files(
        tmp_path,
        languages=("en", "es"),
        num_sentences=2000,
        num_pairs=1,
        num_test_pairs=300,
        num_concepts=20,
        partition=("en", "es", NO_LANGUAGE),
    )
    world = World(0, num_concepts=20)
    said = {language: set(lines(tmp_path / f"text/{language}.txt")) for language in ("en", "es")}
    drawn = list(world.pairs("en", "es", 10_000, stream="anything"))
    assert sum(one in said["en"] or other in said["es"] for one, other in drawn) > 200
    assert not any(one in said["en"] and other in said["es"] for one, other in drawn)
    tested = [line.split("\t") for line in lines(tmp_path / "test/en-es.tsv")]
    assert len(tested) == 300
    assert not any(one in said["en"] or other in said["es"] for one, other in tested)


def test_skipped_lines_are_those_of_another_call(tmp_path):
    """Both parts together are the file of one call; the cut may fall inside of a document."""
    sizes = {"whole": (60, 0), "first": (37, 0), "rest": (23, 37)}
    for name, (number, skipped) in sizes.items():
        write_raw_files(
            tmp_path / name,
            languages=("en", "es"),
            num_sentences=number,
            num_pairs=1,
            num_test_pairs=1,
            skip_sentences=skipped,
        )
    for language in ("en", "es"):
        whole, first, rest = (
            [line for line in lines(tmp_path / name / f"text/{language}.txt") if line]
            for name in sizes
        )
        assert first + rest == whole
        assert len({*whole}) == 60
