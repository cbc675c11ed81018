"""Whole extractions: tables, counts that add up, going on after a stop, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from isoglot.corpus.knowledge import extract as extraction
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.corpus.knowledge.extract_plan import SliceTask, run_slice
from isoglot.corpus.knowledge.extract_tables import ExtractedTables
from isoglot.corpus.knowledge.wikipedia import MAX_OPENING_CHARS, join_opening
from isoglot.errors import CorpusError, RecipeError
from tests.corpus.knowledge.tiny_dumps import (
    CLOSING,
    header,
    item,
    page,
    statement,
    wikidata,
    write,
)

ENGLISH = [
    page(1, "cat", "The '''cat''' is a [[mammal]]. It [[purr]]s.\n== Life ==\nIt hunts [[mice]]."),
    page(2, "Kitty", "#REDIRECT [[cat]]", redirect="Cat"),
    page(3, "Puss", "#redirect [[cat#Life]]"),
    page(4, "Cat (disambiguation)", "* [[Cat]]\n* [[CAT]]"),
    page(5, "Tom", "'''Tom''' may be [[cat|one]] of:\n{{Disambig|x}}"),
    page(6, "Wikipedia:About", "[[x]]", namespace=4),
    page(7, "Data", "{}").replace("wikitext", "json"),
    page(8, "Mouse", "A [[rodent]]. [[Category:Mice]]\n" + "Small. " * 400),
]
ITEMS = [
    item(146, {"en": "cat"}, {"enwiki": "Cat", "dewiki": "Katze"}, {"P31": [statement(7)]}),
    item(83, {"en": "mouse"}, {"enwiki": "Mouse"}),
]


@pytest.fixture
def dumps(tmp_path):
    write(tmp_path / "en.xml.bz2", [header(), *ENGLISH, CLOSING])
    write(tmp_path / "all.json.gz", [wikidata(ITEMS)])
    return tmp_path


CONFIG = ExtractConfig(
    wikipedia={"en": ("en.xml*",)}, wikidata=("all.json.gz",), slice_megabytes=0.0005
)


def rows(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob(pattern)) for row in pq.read_table(file).to_pylist()]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".work" not in path.parts
    }


def test_tables(dumps):
    told = extract(CONFIG, dumps / "X", base=dumps)
    pages = rows(dumps / "X", "wikipedia/en/pages-*.parquet")
    assert [(p["page"], p["title"], p["redirect"], p["kind"]) for p in pages] == [
        (1, "Cat", None, "article"),
        (2, "Kitty", "Cat", "redirect"),
        (3, "Puss", "Cat", "redirect"),
        (4, "Cat (disambiguation)", None, "disambiguation"),
        (5, "Tom", None, "disambiguation"),
        (8, "Mouse", None, "article"),
    ]
    assert pages[0]["lead"] == "The cat is a mammal. It purrs."
    assert pages[0]["opening"] == "The cat is a mammal. It purrs. It hunts mice."
    assert pages[1]["opening"] == pages[1]["lead"] == ""
    assert 1_900 < len(pages[5]["lead"]) <= 2_000
    assert pages[5]["lead"].endswith("Small.")
    assert pages[5]["opening"] == pages[5]["lead"]
    sentences = rows(dumps / "X", "wikipedia/en/sentences-*.parquet")
    assert sentences[:3] == [
        {"page": 1, "index": 0, "text": "The cat is a mammal.",
         "links": [{"start": 13, "end": 19, "target": "Mammal"}]},
        {"page": 1, "index": 1, "text": "It purrs.",
         "links": [{"start": 3, "end": 8, "target": "Purr"}]},
        {"page": 1, "index": 2, "text": "It hunts mice.",
         "links": [{"start": 9, "end": 13, "target": "Mice"}]},
    ]  # fmt: skip
    with gzip.open(dumps / "X" / "text" / "en.txt.gz", "rt", encoding="utf-8") as file:
        assert file.read().startswith(
            "The cat is a mammal.\nIt purrs.\nIt hunts mice.\n\nA rodent.\n"
        )
    assert rows(dumps / "X", "wikidata/sitelinks-*.parquet") == [
        {"item": 146, "language": "en", "title": "Cat"},
        {"item": 83, "language": "en", "title": "Mouse"},
    ]
    counts = told["files"]["en.xml.bz2"]
    assert counts["slices"] > 1
    assert (counts["articles"], counts["redirects"], counts["disambiguations"]) == (2, 2, 2)
    assert counts["pages"] == 2 + 2 + 2 + counts["pages of other namespaces"] + 1
    assert counts["links"] == counts["links kept"] + sum(counts["links dropped"].values())
    assert told == json.loads((dumps / "X" / "counts.json").read_text())
    assert not counts["truncated"]


def test_workers_change_nothing(dumps):
    extract(CONFIG, dumps / "one", base=dumps)
    extract(CONFIG, dumps / "two", base=dumps, workers=2)
    assert contents(dumps / "one") == contents(dumps / "two")


@pytest.fixture
def ran(monkeypatch):
    """The units that are run, as they are run; a limit of how many there may be stops the work."""
    units: list[SliceTask] = []
    limit = [1_000]

    def watched(unit: SliceTask) -> dict[str, Any]:
        if len(units) == limit[0]:
            raise KeyboardInterrupt
        units.append(unit)
        return run_slice(unit)

    monkeypatch.setattr(extraction, "run_slice", watched)
    return units, limit


def test_a_rerun_continues_and_finds_nothing_to_do(dumps, ran):
    units, limit = ran
    limit[0] = 3
    with pytest.raises(KeyboardInterrupt):
        extract(CONFIG, dumps / "X", base=dumps)
    assert not (dumps / "X" / "counts.json").exists()
    first = {unit.name for unit in units}
    units.clear()
    limit[0] = 1_000
    stages: list[tuple[str, int, int | None]] = []
    extract(CONFIG, dumps / "X", base=dumps, progress=lambda *report: stages.append(report))
    assert units
    assert not first & {unit.name for unit in units}
    extracting = [report for report in stages if report[0] == "extract"]
    assert extracting[0][1] > 0
    assert extracting[-1][1] == extracting[-1][2]
    units.clear()
    extract(CONFIG, dumps / "X", base=dumps)
    assert not units
    extract(CONFIG, dumps / "Y", base=dumps)
    assert contents(dumps / "X") == contents(dumps / "Y")


def test_a_changed_dump_or_setting_is_read_again(dumps, ran):
    extract(CONFIG, dumps / "X", base=dumps)
    write(dumps / "en.xml.bz2", [header(), ENGLISH[0], CLOSING])
    told = extract(CONFIG, dumps / "X", base=dumps)
    assert told["files"]["en.xml.bz2"]["pages"] == 1
    assert len(rows(dumps / "X", "wikipedia/en/pages-*.parquet")) == 1
    write(dumps / "de.xml", [header("dewiki"), page(1, "Katze", "Ein [[Tier]]."), CLOSING])
    units, _ = ran
    units.clear()
    wider = ExtractConfig(
        wikipedia={"en": ("en.xml.bz2",), "de": ("de.xml",)},
        wikidata=("all.json.gz",),
        slice_megabytes=CONFIG.slice_megabytes,
    )
    extract(wider, dumps / "X", base=dumps)
    assert {unit.language for unit in units} == {"de", None}
    assert len(rows(dumps / "X", "wikidata/sitelinks-*.parquet")) == 3


def test_bad_input_is_refused(dumps, tmp_path):
    def refused(match: str, error: type[Exception] = CorpusError, **settings) -> None:
        with pytest.raises(error, match=match):
            extract(ExtractConfig(**settings), tmp_path / "Z", base=dumps)

    refused("neither names a dump", RecipeError)
    refused(
        r"en\.xml\.bz2: 'xx' is not a language .* does not name xxwiki",
        RecipeError,
        wikipedia={"xx": ("en.xml.bz2",)},
    )
    refused(
        "'xx' is not a language with a Wikipedia",
        RecipeError,
        wikidata=("all.json.gz",),
        languages=("xx",),
    )
    refused("did you mean 'simple'", RecipeError, wikipedia={"simpel": ("en.xml.bz2",)})
    refused("languages: there are none", RecipeError, wikidata=("all.json.gz",))
    refused("dump of enwiki, and it is named as one of de", wikipedia={"de": ("en.xml.bz2",)})
    refused("there is no such file", wikipedia={"en": ("en.xml.bz",)})
    (dumps / "pretty.json").write_text('{\n  "id": "Q42",\n  "type": "item"\n}\n')
    refused(
        r"pretty.json: has no readable records.*a JSON object a line.* At byte 0",
        wikidata=("pretty.json",),
        languages=("en",),
    )
    (dumps / "empty.xml").write_text(header() + CLOSING)
    refused("empty.xml: has no readable records", wikipedia={"en": ("empty.xml",)})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep me")
    with pytest.raises(CorpusError, match="holds no tables of knowledge"):
        extract(CONFIG, tmp_path / "mine", base=dumps)


def test_wikipedias_codes_become_those_of_the_library(dumps):
    write(dumps / "nan.xml", [header("zh_min_nanwiki"), page(1, "Oslo", "[[A]] b."), CLOSING])
    write(dumps / "als.xml", [header("alswiki"), page(1, "Basel", "[[A]] b."), CLOSING])
    items = [item(1, {"nan": "Oslo"}, {"zh_min_nanwiki": "Oslo", "alswiki": "Oslo"})]
    write(dumps / "some.json", [wikidata(items)])
    extract(
        ExtractConfig(
            wikipedia={"zh-min-nan": ("nan.xml",), "als": ("als.xml",)}, wikidata=("some.json",)
        ),
        dumps / "X",
        base=dumps,
    )
    assert {path.name for path in (dumps / "X" / "wikipedia").iterdir()} == {"nan", "gsw"}
    assert (dumps / "X" / "text" / "nan.txt.gz").is_file()
    links = rows(dumps / "X", "wikidata/sitelinks-*.parquet")
    assert {row["language"] for row in links} == {"nan", "gsw"}
    # as it is named in Wikipedia, or everywhere else
    for name in ("zh-min-nan", "nan"):
        assert ExtractedTables.open(dumps / "X", [name]).languages == ("nan",)
    twice = ExtractConfig(wikipedia={"nan": ("nan.xml",), "zh-min-nan": ("nan.xml",)})
    with pytest.raises(RecipeError, match="nan is named twice, once 'zh-min-nan'"):
        extract(twice, dumps / "Y", base=dumps)


def test_after_a_truncated_dump_is_fetched_again_its_first_parts_are_kept(dumps, ran):
    units, _ = ran
    whole = (dumps / "en.xml.bz2").read_bytes()
    (dumps / "en.xml.bz2").write_bytes(whole[:-100])
    with pytest.raises(CorpusError, match=r"en\.xml\.bz2: is damaged .* byte"):
        extract(CONFIG, dumps / "X", base=dumps)
    first = len(units)
    (dumps / "en.xml.bz2").write_bytes(whole)
    units.clear()
    extract(CONFIG, dumps / "X", base=dumps)
    again = len(units)
    units.clear()
    extract(CONFIG, dumps / "Y", base=dumps)
    assert first > 1
    assert again < len(units)
    assert contents(dumps / "X") == contents(dumps / "Y")


def test_broken_pages_and_lines_are_told_with_their_place(dumps):
    broken = page(9, "Bad", "x").replace("</title>", "</titel>")
    write(dumps / "en.xml.bz2", [header(), *ENGLISH, broken])
    told = extract(CONFIG, dumps / "X", base=dumps)["files"]["en.xml.bz2"]
    assert told["broken pages"] == 1
    assert told["truncated"]
    (fault,) = told["faults"]
    assert fault["of the streams from byte"] > 0
    assert "titel" in fault["fault"] or "mismatch" in fault["fault"]


def test_a_page_that_comes_twice_is_read_once(dumps):
    twice = [header(), ENGLISH[0], page(1, "cat", "Other. Words. [[Mouse]]."), CLOSING]
    write(dumps / "en.xml", ["".join(twice)])
    config = ExtractConfig(wikipedia={"en": ("en.xml",)}, wikidata=("all.json.gz",))
    told = extract(config, dumps / "X", base=dumps)["files"]["en.xml"]
    assert (told["pages"], told["articles"], told["repeated pages"]) == (2, 1, 1)
    assert told["links"] == told["links kept"] == 3
    sentences = rows(dumps / "X", "wikipedia/en/sentences-*.parquet")
    assert [one["text"] for one in sentences] == [
        "The cat is a mammal.", "It purrs.", "It hunts mice."
    ]  # fmt: skip


def test_a_wikipedia_younger_than_the_list_is_read_if_its_dump_says_so(dumps):
    write(dumps / "new.xml", [header("qqqwiki"), *ENGLISH, CLOSING])
    extract(ExtractConfig(wikipedia={"qqq": ("new.xml",)}), dumps / "X", base=dumps)
    assert len(rows(dumps / "X", "wikipedia/qqq/pages-*.parquet")) == 6


def test_an_opening_is_whole_sentences_up_to_its_limit():
    limit = MAX_OPENING_CHARS
    assert join_opening([]) == ""
    assert join_opening(["a" * limit, "b"]) == "a" * limit
    assert join_opening(["a" * (limit - 2), "b", "c"]) == "a" * (limit - 2) + " b"
    assert join_opening(["a" * (limit - 1), "b"]) == "a" * (limit - 1)
    assert join_opening(["一。", "二。", "a."]) == "一。二。a."
    # a first sentence that is too long is cut off at a word
    assert join_opening(["a" * 1_990 + " " + "b" * 20, "c"]) == "a" * 1_990


@pytest.mark.slow
def test_a_ray_cluster_changes_nothing(dumps, ray_cluster):
    extract(CONFIG, dumps / "here", base=dumps)
    extract(CONFIG, dumps / "ray", base=dumps, cluster="auto")
    files = sorted(path.relative_to(dumps / "here") for path in (dumps / "here").rglob("*.*"))
    assert len(files) > 10
    for file in files:
        if (dumps / "here" / file).is_file() and ".work" not in file.parts:
            assert (dumps / "ray" / file).read_bytes() == (dumps / "here" / file).read_bytes()
    (dumps / "en.xml.bz2").write_bytes(b"no dump at all")
    with pytest.raises(CorpusError, match=r"en\.xml\.bz2"):
        extract(CONFIG, dumps / "broken", base=dumps, cluster="auto")
