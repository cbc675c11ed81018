from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoglot.corpus.knowledge import dataframes
from isoglot.corpus.knowledge.link import joins
from isoglot.corpus.knowledge.link.joins import resolve_titles, unique_pages
from isoglot.errors import IsoglotError
from tests.corpus.knowledge.link.small_tables import naive_titles

NAMES = st.sampled_from("ABCDEFGH")
ITEMS = st.integers(1, 6)
FEW = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def engine():
    dataframes.choose_engine()


def frame(schema: list[tuple[str, pa.DataType]], rows: list[Any]):
    import daft

    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, kind) for c, (_, kind) in zip(columns, schema, strict=True)]
    return daft.from_arrow(pa.table(arrays, names=[name for name, _ in schema]))


PAGES = [("title", pa.string()), ("kind", pa.string()), ("redirect", pa.string())]


@st.composite
def pages(draw):
    kind = draw(st.sampled_from(["article", "redirect", "disambiguation"]))
    return draw(NAMES), kind, draw(NAMES) if kind == "redirect" else None


def rows_of(found) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


@FEW
@given(
    wiki=st.lists(pages(), max_size=10),
    sitelinks=st.lists(st.tuples(NAMES, ITEMS), max_size=8),
    listed=st.sets(ITEMS, max_size=2),
    hops=st.integers(1, 4),
)
def test_titles_find_what_dictionaries_find(wiki, sitelinks, listed, hops):
    found = resolve_titles(
        unique_pages(frame(PAGES, wiki)),
        frame([("title", pa.string()), ("item", pa.int64())], sitelinks),
        frame([("item", pa.int64())], [(item,) for item in listed]),
        max_redirects=hops,
    )
    expected = naive_titles(wiki, sitelinks, listed, hops)
    assert rows_of(found.select("title", "item", "status")) == Counter(
        (title, *rest) for title, rest in expected.items()
    )


@pytest.mark.parametrize(("hops", "item"), [(1, None), (2, None), (3, 7), (4, 7)])
def test_redirects_are_followed_so_far_and_no_further(hops, item):
    chain = [("A", "redirect", "B"), ("B", "redirect", "C"), ("C", "redirect", "D")]
    found = resolve_titles(
        frame(PAGES, [*chain, ("D", "article", None)]),
        frame([("title", pa.string()), ("item", pa.int64())], [("D", 7)]),
        frame([("item", pa.int64())], []),
        max_redirects=hops,
    )
    rows = {row["title"]: (row["item"], row["status"]) for row in found.to_pylist()}
    assert rows["A"] == ((7, "kept") if item else (None, "redirect loop"))
    assert rows["C"] == rows["D"] == (7, "kept")


LINK = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("target", pa.string())]))
LINKS = st.lists(
    st.tuples(st.integers(0, 9), NAMES).map(
        lambda pair: {"start": pair[0], "end": pair[0] + 2, "target": pair[1]}
    ),
    max_size=3,
)


@FEW
@given(
    known=st.dictionaries(NAMES, st.one_of(st.none(), ITEMS), max_size=6),
    own=st.dictionaries(st.integers(0, 3), st.one_of(st.none(), ITEMS), max_size=4),
    sentences=st.lists(st.tuples(st.integers(0, 3), LINKS), max_size=6),
)
def test_links_find_what_dictionaries_find(known, own, sentences):
    rows = [(page % 2, page, index, links) for index, (page, links) in enumerate(sentences)]
    named = {title: (item, "kept" if item else "no sitelink") for title, item in known.items()}
    found = joins.link_entities(
        frame(
            [("shard", pa.int32()), ("page", pa.int64()), ("index", pa.int32()), ("links", LINK)],
            rows,
        ),
        frame(
            [("title", pa.string()), ("item", pa.int64()), ("status", pa.string())],
            [(title, *rest) for title, rest in named.items()],
        ),
        frame([("page", pa.int64()), ("item", pa.int64())], list(own.items())),
    )
    expected: Counter[Any] = Counter()
    for shard, page, index, links in rows:
        for link in links:
            item, status = named.get(link["target"], (None, "red link"))
            if item is not None and item == own.get(page):
                item, status = None, "self link"
            expected[(shard, page, index, link["start"], link["end"], item, status)] += 1
    assert rows_of(found) == expected


@FEW
@given(
    claims=st.lists(st.tuples(ITEMS, st.integers(1, 2), ITEMS), max_size=12),
    described=st.sets(ITEMS),
)
def test_triples_find_what_sets_find(claims, described):
    schema = [("subject", pa.int64()), ("relation", pa.int32()), ("object", pa.int64())]
    found = joins.triple_status(
        frame(schema, claims), frame([("item", pa.int64())], [(item,) for item in described])
    )

    def status(subject: int, object_: int) -> str:
        if subject not in described:
            return "subject without description"
        if object_ not in described:
            return "object without description"
        return "subject is object" if subject == object_ else "kept"

    expected = {(s, r, o, status(s, o)) for s, r, o in claims}
    assert rows_of(found) == Counter(expected)
    counts = Counter(relation for _, relation, _, status in expected if status == "kept")
    assert rows_of(joins.relation_counts(found)) == Counter(counts.items())


def test_pages_have_the_entity_of_their_title_unless_they_redirect():
    found = joins.page_entities(
        frame(
            [("shard", pa.int32()), ("page", pa.int64()), ("title", pa.string()), PAGES[1]],
            [(0, 1, "A", "article"), (0, 2, "B", "redirect"), (1, 3, "C", "article")],
        ),
        frame(
            [("title", pa.string()), ("item", pa.int64()), ("status", pa.string())],
            [("A", 7, "kept"), ("B", 7, "kept"), ("C", None, "no sitelink")],
        ),
    )
    assert rows_of(found) == Counter(
        [(0, 1, 7, "kept"), (0, 2, None, "redirect"), (1, 3, None, "no sitelink")]
    )


def test_wikidata_names_disambiguation_pages():
    schema = [("subject", pa.int64()), ("relation", pa.int32()), ("object", pa.int64())]
    claims = [(1, 31, 4167410), (2, 31, 5), (3, 279, 4167410)]
    assert joins.disambiguation_items(frame(schema, claims)).to_pydict() == {"item": [1]}


def test_the_engine_cannot_change_in_a_process():
    dataframes.choose_engine()
    with pytest.raises(IsoglotError, match=r"run on 'local' already.*cannot move to 'auto'"):
        dataframes.choose_engine("auto")


def test_what_is_written_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    import daft

    rows = frame([("a", pa.int64()), ("shard", pa.int32())], [(1, 0), (2, 1), (3, 0)])
    dataframes.write(rows, tmp_path / "all", by="shard")
    assert sorted(dataframes.read_folder(tmp_path / "all").to_pydict()["a"]) == [1, 2, 3]
    assert dataframes.read_folder(tmp_path / "all" / "shard=1").to_pydict() == {"a": [2]}
    assert dataframes.read_folder(tmp_path / "all" / "shard=9").to_pydict() == {"a": []}
    dataframes.write(rows.where(daft.col("a") > 3), tmp_path / "none")
    assert dataframes.read_folder(tmp_path / "none").to_pydict() == {"a": [], "shard": []}
    monkeypatch.setattr(daft.DataFrame, "write_parquet", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dataframes.write(rows, tmp_path / "half")
    assert not (tmp_path / "half").exists()
