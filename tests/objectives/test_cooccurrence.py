"""The regression on co-occurrence: look-up, loss and gradient beside slow references.

Table 1 of MLM-GC: what becomes of MLM without √d, without 1/2n, without warm-up.

The paper says that each of the three fails, as the regression swamps MLM. On so small a model the
first does, by its gradient; the other two do not, and this says by how much they come near it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from transformers import AutoModelForMaskedLM

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus.cooccurrence.pair_table import PairConfig, PairTable
from isoglot.errors import RecipeError
from isoglot.models.config import ModelConfig
from isoglot.objectives import ForwardResult
from isoglot.objectives.cooccurrence import (
    Cooccurrence,
    CooccurrenceRegression,
    PairLookup,
    TokenLayout,
    find_neighbours,
)
from isoglot.objectives.masking import Masking
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import StageConfig, objectives_of
from isoglot.pretraining.optimizer import OptimizerConfig
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_step import StepResult
from isoglot.recipe import load_recipe
from isoglot.types import Cursor
from tests.objectives.laid_out import make_encoder
from tests.pretraining import driver


def table_of(counts, size, kind=np.float32):
    keys = np.array([first * size + second for first, second in sorted(counts)], np.int64)
    values = np.log(np.array([counts[pair] for pair in sorted(counts)], np.float64))
    return PairTable(
        keys=keys, log_counts=values.astype(kind), vocabulary_size=size, language_constants={}
    )


@given(
    counts=st.dictionaries(
        st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda p: tuple(sorted(p))),
        st.one_of(st.just(1.0), st.floats(0.25, 1000, width=32)),
        max_size=60,
    ),
    kind=st.sampled_from([np.float16, np.float32]),
)
@settings(max_examples=50, deadline=None)
def test_look_up_equals_a_dictionary(counts, kind):
    """A pair that counts 1 has the log of one that was never seen: only `seen` tells."""
    lookup = PairLookup(table_of(counts, 21, kind))
    ids = torch.arange(21)
    logs, seen = lookup(ids[:, None], ids)
    asked = [[counts.get((min(a, b), max(a, b))) for b in range(21)] for a in range(21)]
    assert seen.tolist() == [[count is not None for count in row] for row in asked]
    expected = [[math.log(count or 1.0) for count in row] for row in asked]
    assert logs.numpy() == pytest.approx(np.array(expected), rel=float(np.finfo(kind).eps))
    assert logs.dtype == torch.float32
    assert not lookup.state_dict(), "counts stay out of checkpoints"


@pytest.fixture(scope="module")
def batch(corpus):
    masking = Masking(rate=0.3, unit="span")
    makers = {"mlm": MLM(masking=masking), "tlm": TLM(), "cooccurrence": Cooccurrence()}
    streams = {
        "text": TextStream(objectives=("cooccurrence", "mlm"), separators=True),
        "parallel": ParallelStream(objectives=("tlm", "cooccurrence")),
    }
    opened = open_streams(corpus, streams, makers, row_length=96)
    shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
    (found,) = next(Loader(corpus, opened, shape, pad_targets=True).steps(Cursor()))
    return found


@pytest.fixture(scope="module")
def counts(corpus):
    """Half of all pairs, on either side of x_max."""
    rng, size = np.random.default_rng(0), corpus.vocabulary.size
    pairs = np.argwhere(np.triu(rng.random((size, size)) < 0.5))
    values = rng.gamma(0.5, 200, len(pairs)).tolist()
    return {(a, b): x for (a, b), x in zip(pairs.tolist(), values, strict=True)}


def naive_loss(settings, batch, states, output, counts, special):
    """Eq. 3 or Eq. 6, a pair at a time."""
    rows = batch.rows
    length, total = rows.ids.shape[1], states.new_zeros(())
    flat = {name: tensor.flatten().tolist() for name, tensor in rows.tensors().items()}
    ids = list(flat["ids"])
    for start, stop in batch.target_slices.values():
        for place, target in zip(
            batch.target_positions[start:stop].tolist(),
            batch.targets[start:stop].tolist(),
            strict=True,
        ):
            ids[place] = target
    states = states.flatten(0, 1)
    for host in settings.target_objectives:
        start, stop = batch.target_slices[host]
        for t in batch.target_positions[start:stop].tolist():
            terms, number = states.new_zeros(()), 0
            for k in range(t - settings.pairs.window, t + settings.pairs.window + 1):
                same = 0 <= k < len(ids) and k != t and k // length == t // length
                same = same and all(flat[n][k] == flat[n][t] for n in ("sequences", "sentences"))
                if not same or ids[k] in special:
                    continue
                number += 1
                x = counts.get((min(ids[t], ids[k]), max(ids[t], ids[k])), 0.0)
                if x:
                    other = (
                        states[k]
                        if settings.neighbour_vectors == "hidden_states"
                        else output[ids[k]]
                    )
                    dot = states[t] @ other
                    if settings.scale:
                        dot = dot / math.sqrt(states.shape[1])
                    trust = min(1.0, (x / settings.x_max) ** settings.alpha)
                    terms = terms + trust * (dot - math.log(x)) ** 2
            divisor = {"neighbours": max(number, 1), "window": 2 * settings.pairs.window, "none": 1}
            total = total + terms / divisor[settings.normalize_by]
    return total


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"neighbour_vectors": "output_embeddings"},
        {
            "neighbour_vectors": "output_embeddings",
            "normalize_by": "window",
            "target_objectives": ("mlm",),
        },
        {"pairs": PairConfig(window=4), "normalize_by": "none", "scale": False},
        {"pairs": PairConfig(window=1), "x_max": 10.0, "alpha": 0.5, "target_objectives": ("tlm",)},
    ],
    ids=str,
)
def test_loss_and_gradient_equal_a_naive_float64_sum(batch, counts, corpus, changes):
    objective, size = Cooccurrence(**changes), corpus.vocabulary.size
    encoder = make_encoder(size=size)
    table = table_of(counts, size, np.float64)
    module = CooccurrenceRegression(objective, table, corpus.vocabulary.is_special, encoder)
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(4, 96, 32, generator=rng, dtype=torch.float64, requires_grad=True)
    output = encoder.model.get_output_embeddings().weight
    wanted = [states, output] if objective.neighbour_vectors == "output_embeddings" else [states]
    empty = torch.zeros(0)
    encoded = ForwardResult(
        batch=batch, name="gc", hidden_states=states, target_losses=empty, correct=empty
    )
    found = module.loss(encoded)
    special = set(corpus.vocabulary.special)
    expected = naive_loss(objective, batch, states, output, counts, special)
    assert float(found.total.detach()) == pytest.approx(float(expected.detach()), rel=1e-12)
    for mine, theirs in zip(
        torch.autograd.grad(found.total, wanted), torch.autograd.grad(expected, wanted), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)
    seen, near = found.ratios["seen"]
    assert 0.3 < float(seen / near) < 0.7


@pytest.mark.parametrize("side", ["target", "neighbour"])
def test_a_detached_side_gets_no_gradient(batch, counts, corpus, side):
    objective, size = (
        Cooccurrence(neighbour_vectors="output_embeddings", detach=side),
        corpus.vocabulary.size,
    )
    encoder = make_encoder(size=size)
    module = CooccurrenceRegression(
        objective, table_of(counts, size), corpus.vocabulary.is_special, encoder
    )
    states = torch.ones(4, 96, 32, dtype=torch.float64, requires_grad=True)
    output = encoder.model.get_output_embeddings().weight
    empty = torch.zeros(0)
    encoded = ForwardResult(
        batch=batch, name="gc", hidden_states=states, target_losses=empty, correct=empty
    )
    total = module.loss(encoded).total
    gradients = torch.autograd.grad(total, [states, output], allow_unused=True)
    assert [gradient is None for gradient in gradients] == [side == "target", side == "neighbour"]


def test_it_counts_the_masked_tokens_of_its_target_objectives(batch):
    assert batch.num_targets["mlm"] > 0
    assert batch.num_targets["tlm"] > 0
    assert batch.num_targets["cooccurrence"] == batch.num_targets["mlm"] + batch.num_targets["tlm"]


def run_config(**changes):
    stream = TextStream(objectives=("mlm", "cooccurrence"))
    stages = (StageConfig(steps=16, streams={"text": stream}),)
    return driver.config(stages=stages, **changes)


def test_a_run_with_it_lowers_both_losses_and_validates(corpus, tmp_path):
    steps: list[StepResult] = []
    pretrain(run_config(), corpus, tmp_path, on_step=steps.append)
    for name in ("mlm", "cooccurrence"):
        losses = [step.losses[name] for step in steps]
        assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert steps[0].counts["mlm"] == steps[0].counts["cooccurrence"]
    assert steps[-1].metrics["cooccurrence/seen"] > 0.9
    metrics = (tmp_path / "metrics.jsonl").read_text()
    assert "valid/cooccurrence/mean/loss" in metrics
    assert "valid/mlm/mean/perplexity" in metrics


def test_a_stream_without_its_target_objectives_is_refused():
    stream = TextStream(objectives=("cooccurrence",))
    config = driver.config(stages=(StageConfig(steps=1, streams={"text": stream}),))
    with pytest.raises(RecipeError, match="add 'mlm'"):
        objectives_of(config)


@pytest.mark.parametrize(
    "settings",
    [
        ("ablations/mlm-gc-tiny+tlm", ()),
        ("ablations/mlm-gc-tiny-output", ()),
        ("ablations/mlm-gc-tiny-pmi", ("objectives.mlm.masking.pmi.min_count=4",)),
        ("ablations/mlm-gc-tiny-albert", ("stages.0.streams.text.languages=[aa]",)),
    ],
    ids=lambda value: value[0],
)
def test_every_kind_of_recipe_trains(corpus, tmp_path, settings):
    name, changes = settings
    recipe = load_recipe(name, list(changes))
    shape = replace(recipe.model, num_layers=1, hidden_size=32, num_heads=2)
    recipe = replace(
        recipe,
        model=shape,
        stages=tuple(replace(stage, steps=3) for stage in recipe.stages),
        logging=replace(recipe.logging, validate_every_steps=0, validate_examples=3),
    )
    steps: list[StepResult] = []
    outcome = pretrain(recipe, corpus, tmp_path, on_step=steps.append)
    assert outcome.finished
    assert all(math.isfinite(loss) for step in steps for loss in step.losses.values())


def test_alone_it_leaves_the_head_as_it_was(corpus, tmp_path):
    """MLM only chooses the tokens: with weight 0 no gradient comes from its predictions."""
    recipe = load_recipe("ablations/mlm-gc-tiny-alone")
    shape = replace(recipe.model, num_layers=1, hidden_size=32, num_heads=2)
    stages = tuple(replace(stage, steps=2) for stage in recipe.stages)
    recipe = replace(
        recipe,
        model=shape,
        stages=stages,
        logging=replace(recipe.logging, validate_every_steps=0, validate_examples=3),
    )
    outcome = pretrain(recipe, corpus, tmp_path)
    assert outcome.model is not None
    model = AutoModelForMaskedLM.from_pretrained(outcome.model)
    assert not model.lm_head.bias.detach().any(), "the head's bias begins at 0"


def test_neighbours_of_any_batch():
    """Two padded sentences a row of their own: all that is needed is where tokens stand."""
    layout = TokenLayout(
        sentences=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), positions=torch.tensor([0, 1, 2, 3] * 2)
    )
    ordinary = torch.tensor([True] * 6 + [False] * 2)
    near = find_neighbours(layout, torch.tensor([0, 3, 4, 5]), ordinary, 2)
    found = [
        [place for place, there in zip(*row, strict=True) if there]
        for row in zip(near.places.tolist(), near.exists.tolist(), strict=True)
    ]
    assert found == [[1, 2], [1, 2], [5], [4]]


STEPS = 60


@dataclass(frozen=True)
class Course:
    first_gradient: float
    mlm: float


@pytest.fixture(scope="module")
def courses(corpus, tmp_path_factory):
    def train(name, gc, *, warmup=0.1):
        objectives = ("mlm",) if gc is None else ("mlm", "cooccurrence")
        stream = TextStream(objectives=objectives, unit="sentence")
        shape = ModelConfig(
            size="tiny", num_layers=2, hidden_size=64, num_heads=4, max_positions=64, dropout=0.0
        )
        config = driver.config(
            stages=(StageConfig(steps=STEPS, streams={"text": stream}),),
            model=shape,
            objectives={
                "mlm": MLM(masking=Masking(rate=0.3)),
                "cooccurrence": gc or Cooccurrence(),
            },
            optimizer=OptimizerConfig(
                learning_rate=5e-3,
                warmup_ratio=warmup,
                betas=(0.9, 0.999),
                eps=1e-8,
                weight_decay=0.0,
            ),
            batch=BatchConfig(rows=8, micro_rows=8, row_length=64),
        )
        steps: list[StepResult] = []
        folder = tmp_path_factory.mktemp("run") / name
        pretrain(config, corpus, folder, console=Console(quiet=True), on_step=steps.append)
        last = float(np.mean([step.losses["mlm"] for step in steps[-15:]]))
        return Course(first_gradient=steps[0].gradient_norm, mlm=last)

    return {
        "mlm": train("mlm", None),
        "gc": train("gc", Cooccurrence()),
        "no scale": train("scale", Cooccurrence(scale=False)),
        "no factor": train("factor", Cooccurrence(normalize_by="none")),
        "no warm-up": train("warmup", Cooccurrence(), warmup=0.0),
    }


@pytest.mark.slow
def test_with_all_three_mlm_is_learned_beside_it(courses):
    assert courses["gc"].mlm < courses["mlm"].mlm + 0.5


@pytest.mark.slow
def test_without_the_root_of_the_width_it_swamps_mlm(courses):
    """The gradient is hundreds of times as long, and of one cut to length 1 MLM has no share."""
    assert courses["no scale"].first_gradient > 50 * courses["gc"].first_gradient
    assert courses["no scale"].mlm > courses["gc"].mlm + 0.3


@pytest.mark.slow
def test_without_the_factor_mlm_is_still_learned(courses):
    """It is lambda = 2n, and no more than that."""
    ratio = courses["no factor"].first_gradient / courses["gc"].first_gradient
    assert 2 < ratio < 4.2
    assert courses["no factor"].mlm < courses["no scale"].mlm - 0.15


@pytest.mark.slow
def test_without_warm_up_mlm_is_still_learned(courses):
    assert courses["no warm-up"].mlm < courses["no scale"].mlm - 0.15
    assert courses["no warm-up"].mlm == pytest.approx(courses["gc"].mlm, abs=0.25)
