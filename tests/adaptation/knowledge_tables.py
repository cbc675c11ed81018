"""The testbed's entities, names and facts as tables of knowledge."""

from __future__ import annotations

from pathlib import Path

from isoglot.corpus.knowledge.graph.write_tables import (
    GraphConfig,
    GraphSource,
    write_graph_tables,
)
from isoglot.testbed import World

LANGUAGES = ("en", "de", "sw")


def write_tables(
    folder: Path, *, languages: tuple[str, ...] = LANGUAGES, max_entities: int = 200
) -> Path:
    """Tables of knowledge in a folder; pages tell the facts of an entity."""
    world = World(num_concepts=20, max_entities=max_entities)
    raw = folder.parent / f"{folder.name}-raw"
    raw.mkdir(parents=True, exist_ok=True)
    rows = [
        (f"{one.entity}", code, world.entity_names(code)[one.entity], one.text)
        for code in languages
        for one in world.descriptions(code)
    ]
    (raw / "names.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    facts = [(one.subject, one.relation, one.object) for one in world.triples()]
    (raw / "triples.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts), "utf-8")
    named = [(one, code, one) for one in sorted({fact[1] for fact in facts}) for code in languages]
    (raw / "relations.tsv").write_text("".join("\t".join(row) + "\n" for row in named), "utf-8")
    source = GraphSource(files=("names.tsv", "triples.tsv", "relations.tsv"))
    write_graph_tables(GraphConfig(graphs={"testbed": source}), folder, base=raw)
    return folder
