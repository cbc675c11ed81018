"""GPU hours follow from tokens, shapes and the measured speeds."""

import json
import re

import pytest
from reproduce import hours, sizes
from reproduce.plan import Plan, _request, markdown

from isoglot.recipe import load_recipe
from isoglot.tasks import find_task

MEASURED = json.loads(hours._RACE.read_text("utf-8"))["found"]


def test_operations_are_those_of_the_benchmark():
    """The benchmark counted the same shape's operations per token in another way."""
    shape = hours.HUB["xlm-roberta-base"]
    found = MEASURED["rows: Isoglot"]
    counted = found["operations_per_second"] / found["tokens_per_second"]
    assert shape.operations() == pytest.approx(counted, rel=0.01)
    assert shape.weights == pytest.approx(278e6, rel=0.01)


def test_hours_of_the_measured_shape_are_tokens_over_tokens_per_second():
    recipe = load_recipe("ernie-m", ["deterministic=false"])
    tokens = 2048 * 512
    seconds = 100_000 * (tokens / MEASURED["mix: ernie-m, first stage"]["tokens_per_second"])
    seconds += 50_000 * (tokens / MEASURED["mix: ernie-m, second stage"]["tokens_per_second"])
    updates = 150_000 * 0.003
    assert hours.pretraining_hours(recipe, 1) == pytest.approx((seconds + updates) / 3600, rel=1e-6)


def test_a_large_model_costs_as_much_more_as_its_arithmetic():
    base, large = (hours.HUB[f"xlm-roberta-{size}"].operations() for size in ("base", "large"))
    body = 24 * 12 * 1024**2 / (12 * 12 * 768**2)
    assert 2 < large / base < body


def test_ppas_epochs_are_those_of_its_table_1():
    totals = {"ppa": 1.75e6, "ablations/ppa-600k": 4.067e6, "ablations/ppa-2m": 10.467e6}
    for name, pairs in totals.items():
        (stage,) = load_recipe(name).stages
        assert hours.steps_of(stage) == pytest.approx((stage.epochs or 0) * pairs / 128)


def test_fine_tuning_counts_epochs_seeds_and_targets():
    shape, task = hours.HUB["xlm-roberta-base"], find_task("xnli")

    def spent(*words: str) -> float:
        return hours.finetuning_hours(shape, task, _request(["--protocol", "metaxlm", *words]))

    once = spent("--seeds", "1")
    assert spent() == pytest.approx(5 * once)
    assert spent("--seeds", "1", "--set", "epochs=12") == pytest.approx(2 * once)
    two = ("--languages", "de,fr", "--scenario", "translate-train")
    assert spent("--seeds", "1", *two) == pytest.approx(2 * once)


def test_a_plan_adds_up():
    plan = Plan("metaxlm")
    steps = [
        plan.step("isoglot fetch cc100:de cc100:sw squad wikipedia-dump:de --out data"),
        plan.step("isoglot prepare prepare.yaml --out corpus --workers 2"),
        plan.step("isoglot pretrain metaxlm --corpus corpus --out runs/a --resume"),
        plan.step("isoglot finetune runs/a --tasks xnli --data data --protocol metaxlm"),
        plan.step("isoglot report runs/a --out report.html"),
    ]
    fetch, prepare, pretrain, finetune, report = steps
    assert fetch.disk == pytest.approx(18e9 + 332e6 + 35e6)
    assert fetch.unknown
    assert prepare.disk > 0
    assert pretrain.disk == pytest.approx(277.9e6 * 4 * (3 * 3 + 1), rel=0.01)
    assert pretrain.gpu_hours == pytest.approx(3.5, abs=0.3)
    assert finetune.gpu_hours > 0
    assert (report.gpu_hours, report.disk) == (0, 0)
    text = markdown(steps)
    assert "| `fetch, 4 names` |" in text
    assert re.fullmatch(
        r"\| \*\*all\*\* \| \| .*\*\*more than [\d.]+ [GT]B\*\* \|", text.splitlines()[-1]
    )


@pytest.mark.parametrize(
    ("told", "size"), [("305 MB", 305e6), ("about 100 GB", 100e9), ("7.6 MB", 7.6e6)]
)
def test_sizes_are_read_and_shown(told, size):
    assert sizes.parse(told) == size
    assert sizes.shown(size) == told.removeprefix("about ")


def test_the_readme_tells_the_hours_of_the_overview():
    root = hours._RACE.parents[3]
    overview = (root / "reproduce/README.md").read_text("utf-8")
    told = dict(re.findall(r"^\| \[([\w-]+)\]\(.*\| ([\d,]+) \| [^|]*\|$", overview, re.MULTILINE))
    assert len(told) == 5
    least, most = (pick(told.values(), key=int) for pick in (min, max))
    readme = (root / "README.md").read_text("utf-8")
    assert f"{least} (PPA) to {most} (ERNIE-M) GPU hours" in readme
