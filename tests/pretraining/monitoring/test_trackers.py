"""What trackers get: numbers, recipe, samples, scores; and that a run is the same without them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import GeneralTracker
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from isoglot.pretraining.config import LoggingConfig
from isoglot.pretraining.monitoring.text_samples import (
    sample_text,
    tokenizer_decode,
    with_first_sampled,
)
from isoglot.pretraining.monitoring.trackers import TrackerWriter, score_table
from isoglot.pretraining.run import pretrain
from isoglot.types import Batch, Rows
from tests.pretraining import driver

RECIPE = "seed: 0\nnote: '<script>alert(1)</script> *bold*'\n"


def trained(folder, corpus, make, *trackers: str) -> None:
    logging = LoggingConfig(validate_every_steps=6, validate_examples=5, trackers=trackers)
    config = replace(make(), logging=logging)
    pretrain(config, corpus, folder, name="mine", recipe_text=RECIPE)


@pytest.fixture(scope="module")
def tracked(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracked")
    trained(folder, corpus, driver.contrast, "tensorboard")
    return folder


def read_events(folder) -> dict[str, Any]:
    """Tag -> text or scalars of all event files of a run."""
    found: dict[str, Any] = {}
    for file in folder.rglob("events.out.tfevents*"):
        events = EventAccumulator(str(file), size_guidance={"tensors": 0, "scalars": 0})
        events.Reload()
        for tag in events.Tags()["tensors"]:
            (event,) = events.Tensors(tag)
            found[tag] = event.step, event.tensor_proto.string_val[0].decode()
        found |= {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
    return found


def test_tensorboard_has_recipe_samples_and_scores(tracked):
    found = read_events(tracked)
    indented = "".join(f"    {line}\n" for line in RECIPE.splitlines())
    assert found["recipe/text_summary"] == (0, indented), "as code: nothing of it is formatted"
    step, first = found["samples/stage-1/text_summary"]
    assert step == 0
    assert 1 <= first.count("    mlm, row ") <= 3
    step, second = found["samples/stage-2/text_summary"]
    assert step == driver.CONTRAST_STEPS[0]
    for text in (first, second):
        assert "  input: " in text
        assert "  targets: " in text
        assert "<mask>" in text
    records = [json.loads(line) for line in (tracked / "metrics.jsonl").read_text().splitlines()]
    last = [one for one in records if "seconds" not in one][-1]
    step, scores = found["scores/text_summary"]
    assert step == sum(driver.CONTRAST_STEPS)
    for name, value in last.items():
        if name.startswith("valid/") and name.count("/") == 3:
            _, objective, language, metric = name.split("/")
            assert f"| {objective} | {metric} | {language} | {value:.4g} |" in scores
    losses = [record["mlm/loss"] for record in records if "mlm/loss" in record]
    assert [event.value for event in found["mlm/loss"]] == pytest.approx(losses)
    hparams = next(tracked.rglob("hparams.yml")).read_text()
    assert "optimizer.learning_rate: 0.003" in hparams


@pytest.mark.parametrize("make", [driver.contrast, driver.slots])
def test_a_run_is_the_same_bit_for_bit_without_trackers(tracked, corpus, tmp_path, make):
    """Losses of every step, held-out scores and the exported weights."""
    other = tracked
    if make is not driver.contrast:
        other = tmp_path / "tracked"
        trained(other, corpus, make, "tensorboard")
    trained(tmp_path / "plain", corpus, make)

    def numbers(folder):
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        times = ("seconds", "tokens_per_second")
        return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]

    assert numbers(other) == numbers(tmp_path / "plain")
    weights = [load_file(f / "model/model.safetensors") for f in (other, tmp_path / "plain")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])


class Notebook(GeneralTracker):
    """A tracker of somebody else: it takes numbers and texts."""

    name = "notebook"
    requires_logging_directory = False

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[Any, ...]] = []

    @property
    def tracker(self):
        return self.pages

    def store_init_configuration(self, values):
        self.pages.append(("config", values["seed"]))

    def log(self, values, step=None, **kwargs):
        self.pages.append((step, values))

    def finish(self):
        self.pages.append(("end",))


class Tables(Notebook):
    """One with tables, as W&B has."""

    name = "tables"

    def log_table(self, name, columns=None, data=None, dataframe=None, step=None, **kwargs):
        self.pages.append((step, name, columns, data))


class NumbersOnly(Notebook):
    """One that refuses text."""

    name = "mlflow"


@pytest.mark.parametrize("kind", [Notebook, Tables, NumbersOnly])
def test_every_tracker_gets_what_it_takes(kind):
    AcceleratorState._reset_state(reset_partial_state=True)
    tracker = kind()
    accelerator = Accelerator(cpu=True, log_with=tracker)
    writer = TrackerWriter(
        accelerator, "mine", driver.config(seed=5), recipe_text="a: 1\nb: 2\n", step=3
    )
    writer.write({"step": 7, "mlm/loss": 2.0, "note": "text"})
    writer.write({"step": 7, "valid/mlm/de/perplexity": 12.5, "valid/parallel/pairs": 9})
    writer.write({"step": 8, "mlm/loss": 1.0})
    writer.close()
    AcceleratorState._reset_state(reset_partial_state=True)
    table = score_table({"valid/mlm/de/perplexity": 12.5})
    assert table.splitlines()[-1] == "| mlm | perplexity | de | 12.5 |"
    texts: dict[type, list[tuple[Any, ...]]] = {
        Notebook: [
            (3, {"recipe": "    a: 1\n    b: 2\n"}),
            (8, {"scores": f"After step 8:\n\n{table}"}),
        ],
        Tables: [
            (3, "recipe", ["text"], [["a: 1\nb: 2\n"]]),
            (8, "scores", ["text"], [[table]]),
        ],
        NumbersOnly: [],
    }
    recipe, scores = texts[kind][:1], texts[kind][1:]
    assert tracker.pages == [
        ("config", 5),
        *recipe,
        (7, {"mlm/loss": 2.0}),
        (7, {"valid/mlm/de/perplexity": 12.5, "valid/parallel/pairs": 9}),
        (8, {"mlm/loss": 1.0}),
        *scores,
        ("end",),
    ]


def batch() -> Batch:
    """Two rows of two sequences: mlm and moco in the first, mlm and nothing in the second."""
    ids = torch.tensor([[1, 9, 3, 4, 5, 0], [6, 9, 7, 9, 8, 0]])
    sequences = torch.tensor([[0, 0, 0, 1, 1, -1], [0, 0, 0, 0, 1, -1]])
    zeros = torch.zeros_like(ids)
    rows = Rows(
        ids=ids, positions=zeros, languages=zeros, sentences=zeros, roles=zeros, rules=zeros,
        sequences=sequences,
    )  # fmt: skip
    return Batch(
        rows=rows,
        target_positions=torch.tensor([1, 7, 9, 0]),
        targets=torch.tensor([20, 21, 22, 99]),
        target_weights=torch.tensor([1.0, 1.0, 1.0, 0.0]),
        target_slices={"mlm": (0, 4)},
        markers={"moco": {"query": torch.tensor([3])}},
        aux_rows={}, aux_markers={}, labels={}, num_targets={"mlm": 3, "moco": 1}, num_tokens=10,
    )  # fmt: skip


def test_samples_are_input_and_targets_by_sequence():
    def decode(ids):
        return " ".join("<mask>" if one == 9 else f"t{one}" for one in ids)

    assert sample_text(batch(), decode).splitlines() == [
        "mlm, row 0",
        "  input:   t1 <mask> t3",
        "  targets: t20",
        "mlm, row 1",
        "  input:   t6 <mask> t7 <mask>",
        "  targets: t21 | t22",
        "moco, row 0",
        "  input:   t4 t5",
    ]


def test_the_first_batch_is_shown_at_once_and_given_unchanged(corpus):
    first, rest = [batch()], [batch()]
    said: list[str] = []
    given = with_first_sampled(iter([first, rest]), corpus, said.append)
    assert len(said) == 1
    assert "mlm, row 0" in said[0]
    assert [id(one) for one in given] == [id(first), id(rest)]
    assert list(with_first_sampled(iter([]), corpus, said.append)) == []
    assert tokenizer_decode(corpus)([]) == ""
