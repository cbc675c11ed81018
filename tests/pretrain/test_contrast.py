"""Whole runs with momentum contrast: killed and resumed, on two processes, validated, by epochs."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.streams import ParallelStream
from isoglot.errors import RecipeError
from isoglot.models import ExportConfig
from isoglot.objectives import OBJECTIVES, MoCo
from isoglot.objectives.contrast import NO_ITEM, ProjectionConfig, QueueConfig
from isoglot.objectives.masking import Masking
from isoglot.pretrain.config import StageConfig
from isoglot.pretrain.epochs import steps_of
from isoglot.pretrain.run import pretrain
from isoglot.types import Cursor
from tests.pretrain import driver, processes

TOTAL = sum(driver.CONTRAST_STEPS)
LAST = f"checkpoints/step-{TOTAL:08d}/weights.safetensors"
MAKERS = {objective.name: objective() for objective in OBJECTIVES}


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """The run that nobody kills, on one process and on two."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for number in (1, 2):
        run = folder / str(number)
        processes.finish(
            processes.command(corpus.folder, run, "--mix", "contrast", processes=number)
        )
    return folder


def moco_state(run):
    return {n: v for n, v in load_file(run / LAST).items() if n.startswith("objectives.moco.")}


@pytest.mark.slow
@pytest.mark.xdist_group("contrast")
@pytest.mark.parametrize("number", [1, 2])
def test_queue_and_key_weights_survive_being_killed(corpus, undisturbed, tmp_path, number):
    run = tmp_path / "run"
    killed = processes.killed_again_and_again(
        corpus.folder, run, "--mix", "contrast", processes=number, seed=3 + number, kills=2
    )
    assert killed == 2
    assert processes.losses(run / "metrics.jsonl") == processes.losses(
        undisturbed / str(number) / "metrics.jsonl"
    )
    found, expected = (load_file(folder / LAST) for folder in (run, undisturbed / str(number)))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert {
        "objectives.moco.queue.entries",
        "objectives.moco.queue.pointer",
        "objectives.moco.key_encoder.moves",
    } <= found.keys()


@pytest.mark.slow
@pytest.mark.xdist_group("contrast")
def test_two_processes_queue_the_same_sentences_in_the_same_order(undisturbed):
    """Some micro-batches have no pairs at all, and nobody waits for ever."""
    one, two = (moco_state(undisturbed / number) for number in ("1", "2"))
    items = "objectives.moco.queue.items"
    assert torch.equal(one[items], two[items])
    assert (one[items] != NO_ITEM).any()
    assert torch.equal(one["objectives.moco.queue.pointer"], two["objectives.moco.queue.pointer"])
    entries = "objectives.moco.queue.entries"
    filled = one[items][:, 0] != NO_ITEM
    # dropout differs from process to process; the sentences do not
    nearness = torch.cosine_similarity(one[entries][filled], two[entries][filled])
    assert nearness.min() > 0.5
    steps = processes.losses(undisturbed / "2/metrics.jsonl").values()
    counts = [step.get("moco/count", 0) for step in steps]
    assert any(0 < count < 4 for count in counts), "some of the four micro-batches have none"


def test_held_out_pairs_are_scored_and_leave_the_queue_alone(corpus, tmp_path):
    config = driver.contrast()
    config = replace(config, stages=(replace(config.stages[1], steps=3),))
    pretrain(config, corpus, tmp_path / "run")
    *steps, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert {f"valid/moco/{name} loss" for name in ("aa-bb", "aa-cc", "mean")} <= last.keys()
    state = load_file(tmp_path / "run/checkpoints/step-00000003/weights.safetensors")
    pushed = sum(step.get("moco/count", 0) for step in steps)
    assert int(state["objectives.moco.queue.filled"]) == min(pushed, 20)
    assert int(state["objectives.moco.queue.pointer"]) == pushed % 20


def test_the_contrast_of_infoxlm_runs(corpus, tmp_path):
    """Mixed pairs, hidden tokens, an inner layer, and no loss until the queue is full."""
    moco = MoCo(
        layer=1,
        projection=ProjectionConfig(layers=1, size=None, normalize="no"),
        queue=QueueConfig(size=40, start="full"),
        masking=Masking(),
    )
    pairs = ParallelStream(objectives=("tlm",), order="shuffled")
    mixed = ParallelStream(objectives=("moco",), order="shuffled", mix=True)
    stage = StageConfig(steps=10, streams={"parallel": pairs, "mixed": mixed})
    pretrain(
        replace(driver.contrast(), stages=(stage,), objectives={"moco": moco}),
        corpus,
        tmp_path / "run",
    )
    *steps, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    seen = 0
    for step in steps:
        assert (step["moco/loss"] > 0) == (seen >= 40)
        seen += step["moco/count"]
    assert seen > 40
    assert last["valid/mixed.moco/mean loss"] > 0


@pytest.mark.parametrize("epochs", [1.0, 2.5])
def test_epochs_become_the_steps_that_draw_every_example_so_often(corpus, epochs):
    stream = ParallelStream(objectives=("moco", "tlm"), mixture="epochs", order="shuffled")
    stage = StageConfig(epochs=epochs, streams={"parallel": stream})
    shape = driver.contrast().batch
    steps = steps_of(stage, corpus, MAKERS, shape, seed=0, number=0)
    assert steps == steps_of(stage, corpus, MAKERS, shape, seed=0, number=0)
    opened = open_streams(corpus, stage.streams, MAKERS, row_length=shape.row_length)
    examples = sum(part.num_examples for part in opened[0].parts)
    planner = Loader(corpus, opened, shape).planner
    cursor = Cursor()
    for _ in range(steps):
        cursor = planner.plan(cursor)[0].cursor
    drawn = cursor.draws - len(cursor.pending)
    assert drawn == pytest.approx(epochs * examples, rel=0.05)
    fewer = replace(stage, steps=3)
    assert steps_of(fewer, corpus, MAKERS, shape, seed=0, number=0) == 3


def test_a_run_by_epochs_ends_where_it_says(corpus, tmp_path):
    stream = ParallelStream(objectives=("moco",), mixture="epochs", first=30)
    stage = StageConfig(epochs=2, streams={"parallel": stream})
    config = replace(driver.contrast(), stages=(stage,))
    steps = steps_of(stage, corpus, MAKERS, config.batch, seed=0, number=0)
    outcome = pretrain(config, corpus, tmp_path / "run")
    assert outcome.finished
    assert outcome.total_steps == steps
    again = pretrain(config, corpus, tmp_path / "run", resume=True)
    assert again.total_steps == steps


def test_a_finished_run_can_be_exported_for_sentence_transformers(corpus, tmp_path):
    """Wanted from the start, or asked for when the run has long finished."""
    package = pytest.importorskip("sentence_transformers")
    config = driver.contrast()
    config = replace(config, stages=(replace(config.stages[1], steps=2),))
    run = tmp_path / "run"
    pretrain(config, corpus, run)
    assert not (run / "sentence-transformers").exists()
    projected = replace(config, export=ExportConfig(sentence_transformers="projected"))
    pretrain(projected, corpus, run, resume=True)
    opened = package.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    assert opened.encode(["kalo mi"]).shape == (1, 300)
    weights = load_file(run / "checkpoints/step-00000002/weights.safetensors")
    dense = load_file(run / "sentence-transformers/4_Dense/model.safetensors")
    trained = weights["objectives.moco.projection.layers.1.weight"]
    assert torch.equal(dense["linear.weight"], trained), "the query's head, not the key's"
    model = (run / "model/model.safetensors").read_bytes()
    assert (run / "sentence-transformers/model.safetensors").read_bytes() == model
    pooled = replace(config, export=ExportConfig(sentence_transformers="pooled"))
    pretrain(pooled, corpus, run, resume=True)
    opened = package.SentenceTransformer(str(run / "sentence-transformers"), device="cpu")
    assert opened.encode(["kalo mi"]).shape == (1, 32)


def test_an_export_that_cannot_be_is_refused_before_training(corpus, tmp_path):
    wanted = ExportConfig(sentence_transformers="pooled")
    plain, contrast = (replace(c, export=wanted) for c in (driver.config(), driver.contrast()))
    with pytest.raises(RecipeError, match="no objective of the recipe makes sentence vectors"):
        pretrain(plain, corpus, tmp_path / "run")
    layer = replace(contrast, objectives={"moco": MoCo(layer=1)})
    with pytest.raises(RecipeError, match=r"moco reads layer 1.*leave layer out"):
        pretrain(layer, corpus, tmp_path / "run")
    languages = replace(contrast, model=replace(contrast.model, languages="all"))
    with pytest.raises(RecipeError, match="has no language embeddings"):
        pretrain(languages, corpus, tmp_path / "run")
