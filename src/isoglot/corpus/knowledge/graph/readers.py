"""Readers of knowledge graphs: Wikidata's JSON, KGTK edges, DBP15K, countries, and plain TSV.

Each takes the files of one graph and adds names and facts to a `Graph`. Lines that cannot be read
are counted, damaged files are refused by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from isoglot import json_text
from isoglot.corpus.reading.files import read_blocks, read_lines
from isoglot.corpus.reading.reader import Skipped
from isoglot.errors import CorpusError
from isoglot.languages import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.corpus.knowledge.graph.graph import Graph

GraphFormat = Literal["tsv", "wikidata", "kgtk", "dbp15k", "countries"]
_DBPEDIA = re.compile(r"https?://(?:(?!www)([a-z]{2,3}(?:-[a-z]+)*)\.)?dbpedia\.org/")
_MAX_JSON_BYTES = 1 << 30
_COMPRESSED = ("", ".xz", ".gz", ".bz2", ".zst")
_KGTK_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'@([A-Za-z][\w-]*)")


def read_tsv(graph: Graph, files: Sequence[Path], _: Sequence[str]) -> None:
    """Names: `entity, language, name[, description]`. Facts: `subject, relation, object`.

    A file whose name begins with `triples` holds facts, one that begins with `relations` names of
    relations, any other names of entities.
    """
    for file in files:
        kind = "facts" if file.name.startswith("triples") else "names"
        for cells in _rows(graph, file):
            if kind == "facts" and len(cells) == 3:
                graph.fact(*cells)
            elif kind == "names" and len(cells) in (3, 4):
                named = graph.name_relation if file.name.startswith("relations") else graph.name
                named(*cells)
            else:
                graph.dropped["lines with another number of columns"] += 1


def read_wikidata(graph: Graph, files: Sequence[Path], languages: Sequence[str]) -> None:
    """Entities of a dump (a JSON object a line) or of an API answer (`wbgetentities`)."""
    wanted = set(languages)
    for file in files:
        for entity in _wikidata_entities(graph, file):
            try:
                _add_wikidata(graph, entity, wanted)
            except (AttributeError, KeyError, TypeError, ValueError):
                graph.dropped["entities that are not as they should be"] += 1


def _wikidata_entities(graph: Graph, file: Path) -> Iterator[dict[str, Any]]:
    """The objects with an `id`, of a dump's lines or of one JSON document."""
    first = next((line for line in read_lines(file) if isinstance(line, str)), "")
    if first.strip() == "[" or ('"id"' in first and not first.startswith('{"entities"')):
        for line in read_lines(file):
            text = line.strip(" \t\r\n,") if isinstance(line, str) else ""
            if text in ("", "[", "]"):
                continue
            found = _json(text)
            if isinstance(found, dict):
                yield found
            else:
                graph.dropped["lines that are not JSON objects"] += 1
        return
    document = _document(file)
    if isinstance(document, dict) and "id" in document:
        yield document
        return
    entities = document.get("entities") if isinstance(document, dict) else None
    if not isinstance(entities, dict):
        raise CorpusError(
            f'{file}: holds no Wikidata entities. Name JSON of the API ({{"entities": ...}}) or of '
            "a dump (an entity a line)."
        )
    yield from entities.values()


def _add_wikidata(graph: Graph, entity: dict[str, Any], wanted: set[str]) -> None:
    name, labels = entity["id"], entity.get("labels") or {}
    texts = entity.get("descriptions") or {}
    for code, label in labels.items():
        if wanted and canonical(code) not in wanted:
            continue
        if name.startswith("P"):
            graph.name_relation(name, code, label["value"])
        else:
            graph.name(name, code, label["value"], (texts.get(code) or {}).get("value", ""))
    for relation, statements in (entity.get("claims") or {}).items():
        for statement in statements:
            value: Any = (statement["mainsnak"].get("datavalue") or {}).get("value")
            is_item = isinstance(value, dict) and value.get("entity-type") == "item"
            if is_item and statement.get("rank") != "deprecated" and name.startswith("Q"):
                number = value.get("numeric-id")
                graph.fact(name, relation, value["id"] if number is None else f"Q{int(number)}")


def read_kgtk(graph: Graph, files: Sequence[Path], languages: Sequence[str]) -> None:
    """Edges with a header of `node1`, `label` and `node2`, as KGTK writes Wikidata.

    Edges `label` and `description` give names, edges between items facts.
    """
    wanted = set(languages)
    for file in files:
        rows = _rows(graph, file)
        header = next(rows, [])
        if not {"node1", "label", "node2"} <= set(header):
            raise CorpusError(
                f"{file}: is not a KGTK file: its first line does not name the columns node1, "
                "label and node2. Name a file of edges."
            )
        places = [header.index(name) for name in ("node1", "label", "node2")]
        for cells in rows:
            if len(cells) == len(header):
                _add_edge(graph, *(cells[place] for place in places), wanted=wanted)
            else:
                graph.dropped["lines with another number of columns"] += 1


def _add_edge(graph: Graph, subject: str, edge: str, target: str, *, wanted: set[str]) -> None:
    text = _KGTK_TEXT.fullmatch(target)
    if text is None:
        if re.fullmatch(r"P\d+", edge) and re.fullmatch(r"Q\d+", target):
            graph.fact(subject, edge, target)
        return
    said, code = re.sub(r"\\(.)", r"\1", text[1]), text[2]
    if wanted and canonical(code) not in wanted:
        return
    if edge == "label":
        (graph.name_relation if subject.startswith("P") else graph.name)(subject, code, said)
    elif edge == "description":
        graph.describe(subject, code, said)


def read_dbp15k(graph: Graph, files: Sequence[Path], languages: Sequence[str]) -> None:
    """Folders of DBP15K: two graphs of DBpedia and the pairs of entities that are the same.

    The pairs of `sup_pairs` are read, the training part of the data set; those of `ref_pairs`, its
    test part, are not.
    """
    if len(languages) != 2:
        raise CorpusError("format dbp15k needs two languages, those of its graphs 1 and 2.")
    for folder in files:
        entities: dict[str, str] = {}
        relations: dict[str, str] = {}
        same = {cells[0]: cells[1] for cells in _table(graph, folder, "sup_pairs", 2)}
        for number in ("2", "1"):
            language = languages[int(number) - 1]
            for name, uri in _table(graph, folder, f"ent_ids_{number}", 2):
                _check_language(uri, language, folder, number)
                entities[name] = entities.get(same.get(name, "")) or _resource(uri, language)
                graph.name(entities[name], language, _local_name(uri))
            for name, uri in _table(graph, folder, f"rel_ids_{number}", 2):
                relations[name] = f"dbpedia:{_local_name(uri)}"
                graph.name_relation(relations[name], language, _split_words(_local_name(uri)))
        for number in ("1", "2"):
            for subject, relation, object_ in _table(graph, folder, f"triples_{number}", 3):
                if subject in entities and object_ in entities and relation in relations:
                    graph.fact(entities[subject], relations[relation], entities[object_])
                else:
                    graph.dropped["facts of unknown entities"] += 1


def _check_language(uri: str, language: str, folder: Path, number: str) -> None:
    """Refuse a graph of another language than it is said to be of: its URIs name their DBpedia."""
    found = _DBPEDIA.match(uri)
    if found is not None and canonical(found[1] or "en") != language:
        raise CorpusError(
            f"{folder}: graph {number} is of {canonical(found[1] or 'en')} ({uri}), and languages "
            f"say {language}. Name the languages of graph 1 and graph 2 in this order."
        )


def read_countries(graph: Graph, files: Sequence[Path], _: Sequence[str]) -> None:
    """`countries.json` of mledoze/countries: names in many languages, borders, capitals, ..."""
    for relation in _COUNTRY_RELATIONS:
        graph.name_relation(f"country:{relation}", "en", relation)
    for file in files:
        document = _document(file)
        try:
            for country in document:
                _add_country(graph, country)
        except (AttributeError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{file}: is not as countries.json of mledoze/countries ({error!r})."
            ) from error


_COUNTRY_RELATIONS = ("borders", "region", "subregion", "capital", "language", "currency")


def _add_country(graph: Graph, country: dict[str, Any]) -> None:
    own = f"country:{country['cca3']}"
    names = {"eng": country["name"], **country["name"].get("native", {}), **country["translations"]}
    for code, name in names.items():
        common, official = name["common"], name["official"]
        graph.name(own, code, common, official if official != common else "")
    for other in country["borders"]:
        graph.fact(own, "country:borders", f"country:{other}")
    told = {
        "region": [country["region"]],
        "subregion": [country["subregion"]],
        "capital": country["capital"],
        "language": country["languages"].values(),
        "currency": [currency["name"] for currency in country["currencies"].values()],
    }
    for relation, objects in told.items():
        for name in filter(None, objects):
            graph.name(f"{relation}:{name}", "en", name)
            graph.fact(own, f"country:{relation}", f"{relation}:{name}")


READERS: dict[str, Callable[[Graph, Sequence[Path], Sequence[str]], None]] = {
    "tsv": read_tsv,
    "wikidata": read_wikidata,
    "kgtk": read_kgtk,
    "dbp15k": read_dbp15k,
    "countries": read_countries,
}
"""Format -> its reader, which gets the graph, its files and its languages."""


def _table(graph: Graph, folder: Path, name: str, columns: int) -> Iterator[list[str]]:
    """The rows of one table of DBP15K, in its original names (`ent_ids_1`) or with an ending."""
    endings = (f"{ending}{packed}" for ending in ("", ".tsv") for packed in _COMPRESSED)
    file = next((found for e in endings if (found := folder / f"{name}{e}").is_file()), None)
    if file is None:
        raise CorpusError(
            f"{folder}: has no file {name}. Name a complete folder of DBP15K, such as zh_en."
        )
    for cells in _rows(graph, file):
        if len(cells) == columns:
            yield cells
        else:
            graph.dropped["lines with another number of columns"] += 1


def _rows(graph: Graph, file: Path) -> Iterator[list[str]]:
    for line in read_lines(file):
        if isinstance(line, Skipped):
            graph.dropped[f"lines: {line.reason}"] += 1
        elif line.strip():
            yield [cell.strip() for cell in line.split("\t")]


def _document(file: Path) -> Any:
    """The content of a JSON file."""
    content = b""
    for block in read_blocks(file):
        content += block
        if len(content) > _MAX_JSON_BYTES:
            raise CorpusError(f"{file}: has more than 1 GiB of JSON. Split it into several files.")
    found = _json(content.decode("utf-8", errors="replace"))
    if found is None:
        raise CorpusError(
            f"{file}: is not valid JSON, or is nested too deeply. Download or make the file again."
        )
    return found


def _json(text: str) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return json_text.parse(text)
    except ValueError:
        return None


def _resource(uri: str, language: str) -> str:
    return f"dbpedia:{language}:{_local_name(uri)}"


def _local_name(uri: str) -> str:
    return unquote(uri.rsplit("/", 1)[-1]).replace("_", " ")


def _split_words(name: str) -> str:
    """`birthPlace` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
