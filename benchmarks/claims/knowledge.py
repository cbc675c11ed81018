"""Real knowledge for the arms of XLM-K: facts of X-FACTR, told in the study's languages.

    python -m benchmarks.claims.knowledge WORK [--data DATA] [--pack FILE]

Reads DATA (or $ISOGLOT_DATA) and WORK/corpus (`benchmarks.levers.data`); writes

    WORK/knowledge           tables, as `isoglot knowledge graph` writes them
    WORK/corpus/knowledge    the same, linked with the corpus's tokenizer
    WORK/tests/facts         held-out facts: dev.jsonl, test.jsonl, candidates.json, names.json

Kept are facts between entities that have a name in every language. They are divided by a hash of
their two entities into training, development and test before anything is told, so that all facts
about the same two entities are in one part. The data has no descriptions of entities: an entity is
described by its name and some of its training facts, a sentence each, and the other entity of a
sentence is a mention ("Paris. Paris is the capital of France." links to France). `check_tables`
reads the tables again and refuses a held-out fact in them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections import Counter, defaultdict
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.alignment.text import pack, write_lines
from benchmarks.claims.xfactr import Fact, World, read_world
from isoglot.atomic import write_json
from isoglot.corpus.knowledge.extract_tables import COUNTS, ParquetTable, claim
from isoglot.corpus.knowledge.graph.graph import item_number
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.knowledge.link.run import link
from isoglot.corpus.knowledge.store_writer import are_facts_held_out
from isoglot.corpus.knowledge.wikidata import TABLES
from isoglot.corpus.knowledge.wikipedia import PAGES, SENTENCES, join_opening
from isoglot.errors import CorpusError
from isoglot.tasks.examples import OBJECT

if TYPE_CHECKING:
    from collections.abc import Iterable

TEST_SHARE, DEV_SHARE = 0.10, 0.05
MAX_FACTS = 6
"""Facts that describe an entity."""
MIN_CANDIDATES, MAX_CANDIDATES = 50, 200
"""Objects of a relation: with fewer its facts are not tested, of more these many are candidates."""
_MIN_WORD = 4
"""Letters of a word that gives an object away if the subject's name has it, too."""
HELDOUT_SHARE = 0.01
"""Share of the pages and training facts that linking holds out for validation."""


def hash_of(*parts: str) -> float:
    """A number from 0 to 1 that depends on these words alone."""
    digest = blake2b("\t".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64


def part_of(fact: Fact) -> str:
    """Train, dev or test, decided by the two entities."""
    place = hash_of("part", *fact.pair)
    if place < TEST_SHARE:
        return "test"
    return "dev" if place < TEST_SHARE + DEV_SHARE else "train"


def write_tables(world: World, facts: Iterable[Fact], output: Path) -> dict[str, Any]:
    """The tables of training facts; gives the content of counts.json."""
    facts = sorted(facts, key=lambda fact: hash_of("order", *fact))
    told = _told_facts(facts)
    entities = sorted({entity for fact in facts for entity in fact.pair}, key=item_number)
    shutil.rmtree(output, ignore_errors=True)
    claim(output)
    counts = Counter[str](entities=len(entities), facts=len(facts))
    for language in world.languages:
        counts.update(_write_language(world, told, entities, output, language))
    folder = output / "wikidata"
    numbers = {entity: item_number(entity) for entity in entities}
    relations = sorted({int(fact.relation[1:]) for fact in facts})
    with ParquetTable(folder / "items-00000.parquet", TABLES["items"]) as table:
        for entity in entities:
            labels = [(code, world.names[code][entity]) for code in world.languages]
            table.add((numbers[entity], labels, []))
    with ParquetTable(folder / "sitelinks-00000.parquet", TABLES["sitelinks"]) as table:
        table.extend((numbers[one], code, one) for one in entities for code in world.languages)
    with ParquetTable(folder / "claims-00000.parquet", TABLES["claims"]) as table:
        table.extend((numbers[s], int(r[1:]), numbers[o]) for s, r, o in facts)
    with ParquetTable(folder / "properties-00000.parquet", TABLES["properties"]) as table:
        table.extend((number, [("en", f"P{number}")]) for number in relations)
    settings = {"heldout_share": HELDOUT_SHARE, "heldout_seed": 0}
    content = {"settings": settings, **dict(counts)}
    write_json(output / COUNTS, content, indent=1)
    return content


def _told_facts(facts: list[Fact]) -> dict[str, list[Fact]]:
    """Entity -> the facts that describe it: first those that it is the subject of.

    What linking will hold out for validation is in no description.
    """
    subjects, objects = (
        np.array([item_number(entity) for entity in side], np.int64)
        for side in ([fact.subject for fact in facts], [fact.object for fact in facts])
    )
    untold = are_facts_held_out(subjects, objects, share=HELDOUT_SHARE).tolist()
    found: dict[str, list[Fact]] = defaultdict(list)
    for side in ("subject", "object"):
        for fact, hidden in zip(facts, untold, strict=True):
            if not hidden and len(found[getattr(fact, side)]) < MAX_FACTS:
                found[getattr(fact, side)].append(fact)
    return found


def _write_language(
    world: World, told: dict[str, list[Fact]], entities: list[str], output: Path, language: str
) -> dict[str, int]:
    """Pages and sentences of one language; gives their numbers."""
    folder, counts = output / "wikipedia" / language, Counter[str]()
    names, templates = world.names[language], world.templates[language]
    with (
        ParquetTable(folder / "pages-00000.parquet", PAGES) as pages,
        ParquetTable(folder / "sentences-00000.parquet", SENTENCES) as sentences,
    ):
        for entity in entities:
            number = item_number(entity)
            texts = [f"{names[entity]}."]
            sentences.add((number, 0, texts[0], []))
            for fact in told[entity]:
                text, spans = templates[fact.relation].fill(names[fact.subject], names[fact.object])
                is_subject = fact.subject == entity
                other = fact.object if is_subject else fact.subject
                span = (*spans["object" if is_subject else "subject"], other)
                sentences.add((number, len(texts), text, [span]))
                texts.append(text)
            pages.add((number, entity, None, "article", join_opening(texts), texts[0]))
            counts.update(pages=1, sentences=len(texts), links=len(texts) - 1)
    return dict(counts)


def check_tables(world: World, heldout: Iterable[Fact], tables: Path) -> None:
    """Refuse tables that tell a held-out fact: in a claim, on a page, or in the same words."""
    heldout = list(heldout)
    pairs = {tuple(sorted(map(item_number, fact.pair))) for fact in heldout}
    claims = pq.read_table(tables / "wikidata" / "claims-00000.parquet").to_pylist()
    for row in claims:
        if tuple(sorted((row["subject"], row["object"]))) in pairs:
            raise CorpusError(f"{tables}: the held-out fact {row} is a claim.")
    for language in world.languages:
        file = tables / "wikipedia" / language / "sentences-00000.parquet"
        secret = {world.tell(fact, language) for fact in heldout}
        for row in pq.read_table(file).to_pylist():
            links = {
                tuple(sorted((row["page"], item_number(one["target"])))) for one in row["links"]
            }
            if row["text"] in secret or links & pairs:
                raise CorpusError(f"{file}: a held-out fact is told: {row['text']}")


def scorable_facts(
    world: World, facts: Iterable[Fact], train: Iterable[Fact]
) -> tuple[list[Fact], dict[str, int]]:
    """Held-out facts that nothing gives away, and why others are left out.

    An object is given away by the subject's name ("Apple Watch"; LAMA-UHN, Poerner et al., 2020),
    and by a sentence of training about other entities of the same names.
    """
    told = {(code, world.tell(fact, code)) for fact in train for code in world.languages}
    objects: dict[str, set[str]] = defaultdict(set)
    for fact in world.facts:
        objects[fact.relation].add(fact.object)
    kept, dropped = list[Fact](), Counter[str]()
    for fact in facts:
        if len(objects[fact.relation]) < MIN_CANDIDATES:
            dropped["relation with few objects"] += 1
        elif any((code, world.tell(fact, code)) in told for code in world.languages):
            dropped["told of entities of the same names"] += 1
        elif any(_gives_away(names, fact) for names in world.names.values()):
            dropped["object in the subject's name"] += 1
        else:
            kept.append(fact)
    return kept, dict(dropped)


def _gives_away(names: dict[str, str], fact: Fact) -> bool:
    subject, object_ = names[fact.subject].casefold(), names[fact.object].casefold()
    words = {word for word in subject.split() if len(word) >= _MIN_WORD}
    return subject in object_ or object_ in subject or not words.isdisjoint(object_.split())


def write_tests(world: World, parts: dict[str, list[Fact]], output: Path) -> None:
    """Held-out facts as clozes, and the candidates of their relations."""
    known: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    objects: dict[str, dict[str, None]] = defaultdict(dict)
    for fact in world.facts:
        known[fact.subject, fact.relation][fact.object] = None
        objects[fact.relation][fact.object] = None
    for part, facts in parts.items():
        write_lines(output / f"{part}.jsonl", (_test_line(world, fact, known) for fact in facts))
    asked = [fact for facts in parts.values() for fact in facts]
    candidates = {}
    for relation in sorted({fact.relation for fact in asked}):
        right = dict.fromkeys(fact.object for fact in asked if fact.relation == relation)
        others = sorted(objects[relation], key=lambda one: hash_of("candidate", relation, one))
        chosen = [*dict.fromkeys([*right, *others])][:MAX_CANDIDATES]
        # in an order that says nothing about which are right: equal scores take the first
        candidates[relation] = sorted(chosen, key=others.index)
    used = sorted({one for found in candidates.values() for one in found})
    write_json(output / "candidates.json", candidates)
    names = {one: {code: world.names[code][one] for code in world.languages} for one in used}
    write_json(output / "names.json", names)


def _test_line(world: World, fact: Fact, known: dict[tuple[str, str], dict[str, None]]) -> str:
    clozes = {
        code: world.templates[code][fact.relation].fill(world.names[code][fact.subject], OBJECT)[0]
        for code in world.languages
    }
    also = [one for one in known[fact.subject, fact.relation] if one != fact.object]
    said = {**fact._asdict(), "also": also, "clozes": clozes}
    return json.dumps(said, ensure_ascii=False)


def write_knowledge(data: Path, work: Path) -> dict[str, Any]:
    """Tables, the check, the linked corpus and the tests; gives counts of them."""
    world = read_world(data)
    parts: dict[str, list[Fact]] = {"train": [], "dev": [], "test": []}
    for fact in world.facts:
        parts[part_of(fact)].append(fact)
    counts: dict[str, Any] = {"languages": world.languages}
    tests: dict[str, list[Fact]] = {}
    for part in ("dev", "test"):
        tests[part], counts[f"{part}, dropped"] = scorable_facts(world, parts[part], parts["train"])
        counts[part] = len(tests[part])
    heldout = {fact.pair for part in ("dev", "test") for fact in parts[part]}
    assert heldout.isdisjoint(fact.pair for fact in parts["train"])
    tables = work / "knowledge"
    counts |= write_tables(world, parts["train"], tables)
    check_tables(world, [*tests["dev"], *tests["test"]], tables)
    write_tests(world, tests, work / "tests" / "facts")
    manifest = link(LinkConfig(heldout_share=HELDOUT_SHARE), tables, work / "corpus")
    counts["linked"] = {
        "triples": manifest.triples,
        "mentions": {code: one.mentions["train"] for code, one in manifest.counts.items()},
        "description tokens": {c: one.description_tokens for c, one in manifest.counts.items()},
    }
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the knowledge of the arms of XLM-K.")
    parser.add_argument("work", type=Path, help="folder with corpus and tests")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--pack", type=Path, help="also write this .tar.xz; unpack it last")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    for name, number in write_knowledge(given.data, given.work).items():
        print(f"{name}: {number}")
    if given.pack is not None:
        pack(given.work, given.pack, ("corpus/knowledge", "tests/facts"))


if __name__ == "__main__":
    main()
