"""Readers of knowledge graphs: what each format gives, and what is counted or refused."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from isoglot.corpus.knowledge.graph.graph import Fact, Graph, item_number, relation_numbers
from isoglot.corpus.knowledge.graph.readers import READERS
from isoglot.errors import CorpusError


def read(format_: str, *files: Path, languages: tuple[str, ...] = ()) -> Graph:
    graph = Graph()
    READERS[format_](graph, files, languages)
    return graph


def test_tsv(tmp_path):
    names = "Q1\ten\tKenya\ta country\nQ1\tswa\tKenya\nQ2\ten\tUganda\nQ3\ten\nx\t!\ty\n\n"
    (tmp_path / "names.tsv").write_text(names)
    (tmp_path / "relations.tsv").write_text("P47\ten\tborders\n")
    (tmp_path / "triples.tsv").write_text("Q1\tP47\tQ2\nQ1\tP47\tQ2\nQ1\tP47\tQ1\nQ1\tP47\n")
    graph = read("tsv", *(tmp_path / f"{name}.tsv" for name in ("names", "relations", "triples")))
    assert graph.names == {"Q1": {"en": "Kenya", "sw": "Kenya"}, "Q2": {"en": "Uganda"}}
    assert graph.texts == {"Q1": {"en": "a country"}}
    assert graph.relations == {"P47": {"en": "borders"}}
    assert list(graph.facts) == [Fact("Q1", "P47", "Q2")]
    assert graph.dropped == {
        "lines with another number of columns": 2,
        "names that are empty, too long or in no language": 1,
        "repeated facts": 1,
        "facts of an entity with itself": 1,
    }


def test_names_in_the_column_of_the_language_are_no_languages(tmp_path):
    """`entity, name, language` was read as tables of the languages `uganda` and `ouganda`."""
    (tmp_path / "names.tsv").write_text("Q1\tKenya\ten\nQ2\tUganda\ten\nQ2\tOuganda\tfr\n")
    graph = read("tsv", tmp_path / "names.tsv")
    assert graph.names == {}
    assert graph.dropped == {"names that are empty, too long or in no language": 3}


def entity(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "labels": {"en": {"value": f"the {name}"}, "de": {"value": name}}, **more}


def claims(*objects: object, rank: str = "normal") -> dict[str, object]:
    def snak(value: object) -> dict[str, object]:
        return {"mainsnak": {"datavalue": {"value": value}}, "rank": rank}

    return {"P31": [snak(value) for value in objects]}


ENTITIES = [
    entity("Q1", claims=claims({"entity-type": "item", "id": "Q2"}, "text", None)),
    entity("Q2", claims=claims({"entity-type": "item", "numeric-id": 1}, rank="deprecated")),
    entity("Q3", descriptions={"en": {"value": "three"}}, claims=[]),
    entity("P31"),
    {"id": "Q4", "labels": {"en": 4}},
    {"labels": {}},
]


@pytest.mark.parametrize("layout", ["dump", "answer", "pretty"])
def test_wikidata(tmp_path, layout):
    file = tmp_path / "a.json.xz"
    if layout == "dump":
        content = "[\n" + ",\n".join(map(json.dumps, ENTITIES)) + ",\nrubbish\n]\n"
    else:
        document = {"entities": {str(n): one for n, one in enumerate(ENTITIES)}, "success": 1}
        content = json.dumps(document, indent=1 if layout == "pretty" else None)
    file.write_bytes(lzma.compress(content.encode()))
    graph = read("wikidata", file, languages=("en",))
    assert graph.names == {f"Q{n}": {"en": f"the Q{n}"} for n in (1, 2, 3)}
    assert graph.texts == {"Q3": {"en": "three"}}
    assert graph.relations == {"P31": {"en": "the P31"}}
    assert list(graph.facts) == [Fact("Q1", "P31", "Q2")]
    assert graph.dropped["entities that are not as they should be"] == 2
    assert graph.dropped["lines that are not JSON objects"] == (layout == "dump")


@pytest.mark.parametrize(
    "content", ["", "{}", "5", "{" * 100_000, '{"a":' * 100_000, '{"entities":[]}']
)
def test_what_is_no_wikidata_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(
        CorpusError, match=r"a\.json: (holds no Wikidata entities|is not valid JSON)"
    ):
        read("wikidata", tmp_path / "a.json")


def test_kgtk(tmp_path):
    edges = [
        "id\tnode1\tlabel\tnode2",
        r"a	Q1	label	'Kenya\'s'@en",
        "b\tQ1\tlabel\t'Kenia'@de",
        "c\tQ1\tdescription\t'a country'@en",
        "d\tP47\tlabel\t'borders'@en",
        "e\tQ1\tP47\tQ2",
        "f\tQ1\tP1082\t+47000000",
        "g\tQ1\tP47",
    ]
    (tmp_path / "a.tsv").write_text("\n".join(edges))
    graph = read("kgtk", tmp_path / "a.tsv")
    assert graph.names == {"Q1": {"en": "Kenya's", "de": "Kenia"}}
    assert graph.texts == {"Q1": {"en": "a country"}}
    assert list(graph.facts) == [Fact("Q1", "P47", "Q2")]
    assert read("kgtk", tmp_path / "a.tsv", languages=("de",)).names == {"Q1": {"de": "Kenia"}}
    (tmp_path / "b.tsv").write_text("subject\tobject\n")
    with pytest.raises(CorpusError, match=r"b\.tsv: is not a KGTK file"):
        read("kgtk", tmp_path / "b.tsv")


def dbp15k(folder: Path) -> Path:
    files = {
        "ent_ids_1": "0\thttp://zh.dbpedia.org/resource/肯尼亚\n1\thttp://zh.dbpedia.org/resource/東非",
        "ent_ids_2": "5\thttp://dbpedia.org/resource/Kenya\n6\thttp://dbpedia.org/resource/Lake_%C3%85_(x)",
        "rel_ids_1": "0\thttp://zh.dbpedia.org/property/partOf",
        "rel_ids_2": "7\thttp://dbpedia.org/property/partOf\n8\thttp://dbpedia.org/property/lake",
        "triples_1": "0\t0\t1\n0\t0\t9",
        "triples_2": "5\t8\t6",
        "sup_pairs": "0\t5",
        "ref_pairs": "1\t6",
    }
    for name, content in files.items():
        (folder / f"{name}.tsv.xz").write_bytes(lzma.compress(content.encode()))
    return folder


def test_dbp15k_joins_training_pairs_and_no_test_pairs(tmp_path):
    graph = read("dbp15k", dbp15k(tmp_path), languages=("zh", "en"))
    kenya, lake, east = "dbpedia:en:Kenya", "dbpedia:en:Lake Å (x)", "dbpedia:zh:東非"
    assert graph.names == {
        kenya: {"en": "Kenya", "zh": "肯尼亚"},
        lake: {"en": "Lake Å (x)"},
        east: {"zh": "東非"},
    }
    assert list(graph.facts) == [
        Fact(kenya, "dbpedia:partOf", east),
        Fact(kenya, "dbpedia:lake", lake),
    ]
    assert graph.relations["dbpedia:partOf"] == {"en": "part of", "zh": "part of"}
    assert graph.dropped == {"facts of unknown entities": 1}
    with pytest.raises(CorpusError, match="two languages"):
        read("dbp15k", tmp_path)
    with pytest.raises(CorpusError, match=r"graph 2 is of en \(http://dbpedia.* languages say zh"):
        read("dbp15k", tmp_path, languages=("en", "zh"))
    (tmp_path / "sup_pairs.tsv.xz").unlink()
    with pytest.raises(CorpusError, match="has no file sup_pairs"):
        read("dbp15k", tmp_path, languages=("zh", "en"))


def test_countries(tmp_path):
    country = {
        "cca3": "KEN",
        "name": {
            "common": "Kenya",
            "official": "Republic of Kenya",
            "native": {"swa": {"common": "Kenya", "official": "Jamhuri ya Kenya"}},
        },
        "translations": {"deu": {"common": "Kenia", "official": "Kenia"}},
        "borders": ["UGA"],
        "region": "Africa",
        "subregion": "",
        "capital": ["Nairobi"],
        "languages": {"swa": "Swahili"},
        "currencies": {"KES": {"name": "Kenyan shilling"}},
    }
    (tmp_path / "c.json").write_text(json.dumps([country]))
    graph = read("countries", tmp_path / "c.json")
    own = "country:KEN"
    assert graph.names[own] == {"en": "Kenya", "sw": "Kenya", "de": "Kenia"}
    assert graph.texts[own] == {"en": "Republic of Kenya", "sw": "Jamhuri ya Kenya"}
    assert [fact.object for fact in graph.facts] == [
        "country:UGA",
        "region:Africa",
        "capital:Nairobi",
        "language:Swahili",
        "currency:Kenyan shilling",
    ]
    (tmp_path / "c.json").write_text('[{"cca3": "KEN"}]')
    with pytest.raises(CorpusError, match=r"c\.json: is not as countries\.json"):
        read("countries", tmp_path / "c.json")


def test_numbers_of_items_and_relations():
    assert item_number("Q42") == 42
    others = [item_number(name) for name in ("Q", "Q4x", "dbpedia:en:Kenya", "Q" + "9" * 19)]
    assert len(set(others)) == 4
    assert all(2**62 <= number < 2**63 for number in others)
    graph = Graph()
    for relation in ("b", "P31", "a", "P17"):
        graph.fact("x", relation, "y")
    assert relation_numbers(graph) == {"P17": 17, "P31": 31, "a": 10**9, "b": 10**9 + 1}
