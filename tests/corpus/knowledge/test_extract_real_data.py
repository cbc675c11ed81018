"""On pieces of real dumps in 25 languages: counts and links against slow, independent readings."""

from __future__ import annotations

import json
import lzma
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from html import unescape
from pathlib import Path

import mwparserfromhell
import pyarrow.parquet as pq
import pytest
from mwparserfromhell.nodes import HTMLEntity, Tag, Text, Wikilink

from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.corpus.knowledge.markup.localized import CATEGORIES, FILES, PROJECTS, WIKIPEDIAS

DATA = Path(os.environ.get("ISOGLOT_DATA", "")) / "knowledge"
pytestmark = [
    pytest.mark.skipif("ISOGLOT_DATA" not in os.environ, reason="ISOGLOT_DATA names no folder"),
    pytest.mark.slow,
]
NOT_TEXT = """ref references math chem gallery timeline syntaxhighlight source score imagemap hiero
    mapframe graph templatestyles pre table style includeonly nowiki""".split()
DUMP = re.compile(r"(..)wiki-|dbpedia-minidump\.(\w+)")


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    dumps = defaultdict(list)
    for path in sorted((DATA / "wikipedia_dumps").glob("*.xml.xz")):
        ((wiki, minidump),) = DUMP.findall(path.name)
        language = wiki or minidump
        if language != "wikidata":
            dumps[language].append(f"wikipedia_dumps/{path.name}")
    config = ExtractConfig(
        wikipedia={language: tuple(files) for language, files in dumps.items()},
        wikidata=("wikidata/dump-excerpt.json.xz",),
        keep_all_items=True,
        check_site=False,  # the headers of these pieces all say enwiki
    )
    folder = tmp_path_factory.mktemp("real") / "X"
    return folder, extract(config, folder, base=DATA)


def slow_pages(file: str):
    """(namespace, is a redirect, text) of every page, with another parser."""
    with lzma.open(DATA / file) as content:
        for _, element in ET.iterparse(content):  # noqa: S314
            if element.tag.endswith("}page"):
                found = {child.tag.split("}")[1]: child for child in element.iter()}
                yield found["ns"].text, "redirect" in found, found["title"].text, found["text"].text


def test_pages_redirects_and_links_as_counted_slowly(extracted):
    _, told = extracted
    for file, counts in told["files"].items():
        if "language" not in counts:
            continue
        pages = list(slow_pages(file))
        articles = [text or "" for space, _, _, text in pages if space == "0"]
        assert counts["pages"] == len(pages)
        assert counts.get("pages of other namespaces", 0) == len(pages) - len(articles)
        assert counts.get("redirects", 0) == sum(
            sent for space, sent, _, _ in pages if space == "0"
        )
        links = sum(len(re.findall(r"\[\[", text)) for text in articles)
        assert counts["links"] == links
        assert counts["links kept"] + sum(counts["links dropped"].values()) == links
        assert not counts["faults"]


def test_items_and_claims_as_counted_slowly(extracted):
    folder, told = extracted
    with lzma.open(DATA / "wikidata" / "dump-excerpt.json.xz", "rt", encoding="utf-8") as file:
        entities = [json.loads(line.strip().rstrip(",")) for line in file if len(line) > 2]
    languages = set(told["settings"]["wikipedia"])
    names: Counter[int] = Counter()
    titles = set()
    claims: Counter[tuple[int, int, int]] = Counter()
    for entity in entities:
        item = int(entity["id"][1:])
        names[item] = sum(language in languages for language in entity["labels"])
        for site, link in entity["sitelinks"].items():
            code = {"simplewiki": "en_simple"}.get(site, site.removesuffix("wiki"))
            if site.endswith("wiki") and code in languages:
                titles.add((item, code, link["title"]))
        for relation, statements in dict(entity["claims"]).items():
            for one in statements:
                value = one["mainsnak"].get("datavalue", {}).get("value")
                kind = value.get("entity-type") if isinstance(value, dict) else None
                if one["rank"] != "deprecated" and kind == "item":
                    claims[item, int(relation[1:]), value["numeric-id"]] += 1
    items = pq.read_table(folder / "wikidata/items-00000.parquet").to_pylist()
    assert {row["item"]: len(row["labels"]) for row in items} == names
    rows = pq.read_table(folder / "wikidata/sitelinks-00000.parquet").to_pylist()
    assert {tuple(row.values()) for row in rows} == titles
    rows = pq.read_table(folder / "wikidata/claims-00000.parquet").to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == claims
    counts = told["files"]["wikidata/dump-excerpt.json.xz"]
    assert (counts["lines"], counts["claims kept"]) == (len(entities), claims.total())
    assert counts["truncated"]  # the piece has no closing bracket


def shown(code) -> str:
    """What a reader sees of an anchor."""
    text = ""
    for node in code.nodes:
        if isinstance(node, Text):
            text += str(node)
        elif isinstance(node, HTMLEntity):
            text += node.normalize()
        elif isinstance(node, Tag) and node.tag == "br":
            text += " "
        elif isinstance(node, Tag) and node.contents and str(node.tag).lower() not in NOT_TEXT:
            text += shown(node.contents)
    return text


def expected_links(code) -> list[tuple[str, str]]:
    """(anchor, target) of the links that stand in running text, by mwparserfromhell."""
    links = []
    for index, node in enumerate(code.nodes):
        if isinstance(node, Tag) and node.contents and str(node.tag).lower() not in NOT_TEXT:
            links += expected_links(node.contents)
        elif isinstance(node, Wikilink):
            target = unescape(str(node.title)).strip(" :")
            prefix = target.partition(":")[0].strip().lower() if ":" in target else None
            known = FILES | CATEGORIES | PROJECTS | WIKIPEDIAS | {"user", "wikipedia", "portal"}
            if not target or "#" in target or prefix in known:
                continue
            anchor = target if node.text is None else shown(node.text)
            following = code.nodes[index + 1] if index + 1 < len(code.nodes) else ""
            following = str(following) if isinstance(following, Text) else ""
            trail = following[: len(following) - len(re.sub(r"^[^\W\d_]+", "", following))]
            links.append((" ".join((anchor + trail).split()), target))
    return links


@pytest.mark.parametrize("language", ["de", "en", "es", "fi", "fr", "it", "nl", "ro", "ru", "tr"])
def test_spans_read_the_anchors_that_another_parser_finds(extracted, language):
    """Languages whose words simply go on behind a link, so the other parser's trail is easy."""
    folder, told = extracted
    found: Counter[tuple[str, str]] = Counter()
    expected: Counter[tuple[str, str]] = Counter()
    shards = sorted((folder / "wikipedia" / language).glob("sentences-*.parquet"))
    for file, shard in zip(told["settings"]["wikipedia"][language], shards, strict=True):
        if "shortened" in file:
            continue  # large; the others suffice
        for row in pq.read_table(shard).to_pylist():
            for link in row["links"]:
                anchor = row["text"][link["start"] : link["end"]]
                assert anchor == anchor.strip()
                found[anchor, link["target"].lower()] += 1
        for space, sent, title, text in slow_pages(file):
            if space == "0" and not sent and "(disambiguation)" not in title:
                links = expected_links(mwparserfromhell.parse(text))
                expected.update(
                    (anchor, " ".join(target.replace("_", " ").split()).lower())
                    for anchor, target in links
                )
    survived = (expected & found).total()
    assert expected.total() > 100
    assert survived / expected.total() >= 0.99
