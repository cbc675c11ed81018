"""Wikidata lines to tables: what is kept, what is counted, what is passed over unread."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from isoglot.corpus.knowledge.dump_files import FileSlice
from isoglot.corpus.knowledge.wikidata import (
    TABLES,
    EntitiesTask,
    extract_entities,
)
from tests.corpus.knowledge.tiny_dumps import item, statement, wikidata, write

PROPERTY = '{"type":"property","id":"P31","labels":{"en":{"language":"en","value":"instance of"}}}'
ADAMS = item(
    42,
    {"en": "Douglas Adams", "de": "Douglas Adams", "fr": "Douglas Adams"},
    {"enwiki": "Douglas Adams", "dewiki": "Douglas Adams", "enwikiquote": "Douglas Adams"},
    {
        "P31": [statement(5), statement(6, rank="deprecated")],
        "P19": [statement(350, rank="preferred"), statement(0, snaktype="somevalue")],
        "P40": [statement(0, snaktype="novalue")],
        "P345": [statement("nm0010930")],
    },
    {"en": ["DNA", "Douglas Noel Adams"], "fr": ["D. Adams"]},
)


def run(path: Path, *, keep_all_items: bool = False, languages: tuple[str, ...] = ("en", "de")):
    task = EntitiesTask(
        part=FileSlice(path=path),
        languages=languages,
        keep_all_items=keep_all_items,
        tables={table: path.parent / f"{table}.parquet" for table in TABLES},
    )
    counts = extract_entities(task)
    return counts, {table: pq.read_table(file).to_pylist() for table, file in task.tables.items()}


@pytest.mark.parametrize("suffix", ["json", "json.bz2", "json.gz"])
def test_tables_and_counts(tmp_path, suffix):
    lines = [
        ADAMS,
        PROPERTY,
        item(7, {"en": "seven"}, {"frwiki": "Sept"}),
        item(8, {"en": "eight"}, {}),
        '{"type":"lexeme","id":"L3"}',
    ]
    path = write(tmp_path / f"all.{suffix}", [wikidata(lines)])
    counts, tables = run(path)
    assert tables["items"] == [
        {
            "item": 42,
            "labels": [
                {"language": "en", "text": "Douglas Adams"},
                {"language": "de", "text": "Douglas Adams"},
            ],
            "aliases": [
                {"language": "en", "text": "DNA"},
                {"language": "en", "text": "Douglas Noel Adams"},
            ],
        }
    ]
    assert tables["sitelinks"] == [
        {"item": 42, "language": "en", "title": "Douglas Adams"},
        {"item": 42, "language": "de", "title": "Douglas Adams"},
    ]
    assert tables["claims"] == [
        {"subject": 42, "relation": 31, "object": 5},
        {"subject": 42, "relation": 19, "object": 350},
    ]
    assert tables["properties"] == [
        {"relation": 31, "labels": [{"language": "en", "text": "instance of"}]}
    ]
    assert counts == {
        "lines": 5,
        "items": 1,
        "properties": 1,
        "other entities": 1,
        "items without an article": 2,
        "sitelinks": 2,
        "statements": 6,
        "claims kept": 2,
        "claims dropped": {"deprecated": 1, "not an item": 1, "novalue": 1, "somevalue": 1},
        "truncated": False,
        "faults": [],
    }


def test_keep_all_items(tmp_path):
    path = write(tmp_path / "all.json", [wikidata([ADAMS, item(8, {"en": "eight"}, {})])])
    counts, tables = run(path, keep_all_items=True)
    assert [row["item"] for row in tables["items"]] == [42, 8]
    assert "items without an article" not in counts


def test_the_order_of_keys_does_not_matter(tmp_path):
    """An item is passed over for its sitelinks only, wherever they stand and whatever it names."""
    entity = json.loads(ADAMS)
    tricky = item(9, {"en": '"sitelinks":', "de": '"enwiki":'}, {"frwiki": "x"})
    other = json.dumps(
        {key: entity[key] for key in ("sitelinks", "id", "claims", "type", "labels")}
    )
    path = write(tmp_path / "all.json", [wikidata([other, tricky])])
    counts, tables = run(path)
    assert [row["item"] for row in tables["items"]] == [42]
    assert len(tables["claims"]) == 2
    assert counts["items without an article"] == 1


def test_bad_lines_are_counted_with_their_bytes(tmp_path):
    odd = '{"id":"Q5","sitelinks":{"enwiki":{}}}'
    content = wikidata([ADAMS, ADAMS[:-40] + "}", "rubbish", '{"success":1}', odd])[:-2]
    path = write(tmp_path / "all.json", [content])
    counts, _ = run(path)
    assert (counts["lines"], counts["items"], counts["bad lines"]) == (5, 1, 4)
    raw = content.encode()
    second = raw.index(b"\n", 10) + 1
    assert [fault["offset"] for fault in counts["faults"]] == [
        second,
        raw.index(b"rubbish"),
        raw.index(b'{"success'),
        raw.index(b'{"id":"Q5"'),
    ]
    assert counts["truncated"]


def test_an_old_dump_has_numbers_only(tmp_path):
    line = ADAMS.replace(',"id":"Q5"', "").replace('"numeric-id":350,', "")
    _, tables = run(write(tmp_path / "all.json", [wikidata([line])]))
    assert [row["object"] for row in tables["claims"]] == [5, 350]


def test_labels_and_sitelinks_are_found_under_wikimedias_own_codes(tmp_path):
    found = item(
        42,
        {"nb": "Oslo", "nan": "Oslo", "be-tarask": "Осла"},
        {"nowiki": "Oslo", "zh_min_nanwiki": "Oslo chhī", "be_x_oldwiki": "Осла"},
        {},
        {"nb": ["Kristiania"]},
    )
    path = write(tmp_path / "all.json", [wikidata([found])])
    _, tables = run(path, languages=("no", "nan", "be_tarask"))
    assert tables["items"] == [
        {
            "item": 42,
            "labels": [
                {"language": "no", "text": "Oslo"},
                {"language": "nan", "text": "Oslo"},
                {"language": "be_tarask", "text": "Осла"},
            ],
            "aliases": [{"language": "no", "text": "Kristiania"}],
        }
    ]
    titles = {row["language"]: row["title"] for row in tables["sitelinks"]}
    assert titles == {"no": "Oslo", "nan": "Oslo chhī", "be_tarask": "Осла"}
