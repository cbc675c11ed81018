from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.tasks import TASKS, find_task
from isoglot.tasks.testbed import WorldNer, WorldSizes

TESTBED = [type(find_task(name)) for name in TASKS if name.startswith("testbed-")]
SMALL = WorldSizes(
    train=60, dev=40, test=40, concepts=40, entities=12, languages=("en", "ru", "zh")
)


def gold(example):
    if hasattr(example, "label"):
        return example.label
    return example.tags if hasattr(example, "tags") else example.answers[0].text


@pytest.mark.parametrize("kind", TESTBED)
def test_rows_have_the_same_id_in_all_languages_and_the_truth_scores_one(kind):
    task = kind(SMALL)
    for split in ("train", "dev", "test"):
        rows = {
            code: task.read(task.find_split(Path(), code, split)) for code in ("en", "ru", "zh")
        }
        assert len({tuple(e.id for e in examples) for examples in rows.values()}) == 1
        for code, examples in rows.items():
            scores = task.score(examples, [gold(example) for example in examples], code)
            assert {scores[metric.name] for metric in task.metrics} == {1.0}


@pytest.mark.parametrize("kind", TESTBED)
def test_nothing_of_test_is_trained_on(kind):
    task = kind(SMALL)

    def texts(split):
        examples = task.read(task.find_split(Path(), "en", split))
        return {repr(example).replace(example.id, "") for example in examples}

    assert texts("test")
    assert not texts("test") & texts("train")


def test_a_wrong_name_costs():
    task = WorldNer(SMALL)
    examples = task.read(task.find_split(Path(), "en", "train"))
    nothing = [("O",) * len(example.words) for example in examples]
    assert task.score(examples, nothing, "en")["f1"] == 0.0
