"""Files of entity-linking and object-entailment: what is read, what is refused, how ranks count."""

from __future__ import annotations

import json

import pytest

from isoglot.errors import CorpusError
from isoglot.tasks import find_task
from isoglot.tasks.examples import EntityQuery

MENTION = {"entity": "Q1", "description": "Eins", "text": "one is", "start": 0, "end": 3}
FACT = {"entity": "Q1", "description": "Eins", "text": "one", "relation": 31, "also": ["Q2"]}
CANDIDATE = {"entity": "Q9", "description": "Neun"}


def read(tmp_path, task, *rows):
    folder = tmp_path / task
    folder.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "en-de.jsonl").write_text("\n".join(lines))
    (split,) = find_task(task).splits(tmp_path)
    assert (split.language, split.name) == ("en-de", "test")
    return find_task(task).read(split)


def test_examples_are_read(tmp_path):
    assert read(tmp_path, "entity-linking", MENTION, CANDIDATE) == [
        EntityQuery(entity="Q1", description="Eins", text="one is", start=0, end=3),
        EntityQuery(entity="Q9", description="Neun"),
    ]
    (fact,) = read(tmp_path, "object-entailment", FACT)
    assert (fact.relation, fact.also) == (31, ("Q2",))


@pytest.mark.parametrize(
    "row",
    [
        "rubbish",
        "5",
        '{"a":' * 50_000,
        {"entity": "Q1"},
        {**MENTION, "more": 1},
        {**MENTION, "entity": 5},
        {**MENTION, "description": " "},
        {**MENTION, "start": "0"},
        {**MENTION, "start": -1},
        {**MENTION, "start": 3},
        {**MENTION, "end": 7},
        {**MENTION, "also": 5},
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, row):
    with pytest.raises(CorpusError, match=r"en-de\.jsonl.*2"):
        read(tmp_path, "entity-linking", MENTION, row)


def test_the_edges_of_a_span(tmp_path):
    (found,) = read(tmp_path, "entity-linking", {**MENTION, "start": 5, "end": 6})
    assert found.text[found.start : found.end] == "s"


def test_a_fact_needs_its_relation(tmp_path):
    with pytest.raises(CorpusError, match="has no relation"):
        read(tmp_path, "object-entailment", {**FACT, "relation": None})


def test_ranks_count_for_queries_alone():
    task = find_task("entity-linking")
    query = EntityQuery(entity="Q1", description="Eins", text="one", end=3)
    examples = [query, EntityQuery(entity="Q9", description="Neun"), query, query, query]
    found = task.score(examples, [1, 0, 10, 10.5, 2], "en-de")
    assert found == {
        "hits@1": 1 / 4,
        "hits@10": 3 / 4,
        "mrr": pytest.approx((1 + 1 / 10 + 1 / 10.5 + 1 / 2) / 4),
    }
    assert task.score(examples[1:2], [0], "en-de") == {}
