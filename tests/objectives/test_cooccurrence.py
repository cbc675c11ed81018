"""The regression on co-occurrence: look-up, loss and gradient beside slow references."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForMaskedLM

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus.cooccurrence import PairConfig, PairTable
from isoglot.errors import RecipeError
from isoglot.objectives import MLM, TLM, Cooccurrence, Encoded
from isoglot.objectives.cooccurrence import Regression
from isoglot.objectives.masking import Masking
from isoglot.objectives.neighbours import Layout, neighbours
from isoglot.objectives.pair_lookup import PairLookup
from isoglot.pretrain.config import StageConfig, objectives_of
from isoglot.pretrain.run import pretrain
from isoglot.pretrain.stage import Step
from isoglot.recipe import load_recipe
from isoglot.types import Cursor
from tests.objectives.laid_out import make_encoder
from tests.pretrain import driver


def table_of(counts, size, kind=np.float32):
    keys = np.array([first * size + second for first, second in sorted(counts)], np.int64)
    values = np.log(np.array([counts[pair] for pair in sorted(counts)], np.float64))
    return PairTable(keys=keys, logs=values.astype(kind), size=size, constants={})


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
    (found,) = next(Loader(corpus, opened, shape, fixed_sites=True).steps(Cursor()))
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
    for start, stop in batch.spans.values():
        for place, target in zip(
            batch.positions[start:stop].tolist(), batch.targets[start:stop].tolist(), strict=True
        ):
            ids[place] = target
    states = states.flatten(0, 1)
    for host in settings.on:
        start, stop = batch.spans[host]
        for t in batch.positions[start:stop].tolist():
            terms, number = states.new_zeros(()), 0
            for k in range(t - settings.pairs.window, t + settings.pairs.window + 1):
                same = 0 <= k < len(ids) and k != t and k // length == t // length
                same = same and all(flat[n][k] == flat[n][t] for n in ("sequences", "sentences"))
                if not same or ids[k] in special:
                    continue
                number += 1
                x = counts.get((min(ids[t], ids[k]), max(ids[t], ids[k])), 0.0)
                if x:
                    other = states[k] if settings.against == "states" else output[ids[k]]
                    dot = states[t] @ other
                    if settings.scale:
                        dot = dot / math.sqrt(states.shape[1])
                    trust = min(1.0, (x / settings.x_max) ** settings.alpha)
                    terms = terms + trust * (dot - math.log(x)) ** 2
            divisor = {"neighbours": max(number, 1), "window": 2 * settings.pairs.window, "none": 1}
            total = total + terms / divisor[settings.factor]
    return total


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"against": "output"},
        {"against": "output", "factor": "window", "on": ("mlm",)},
        {"pairs": PairConfig(window=4), "factor": "none", "scale": False},
        {"pairs": PairConfig(window=1), "x_max": 10.0, "alpha": 0.5, "on": ("tlm",)},
    ],
    ids=str,
)
def test_loss_and_gradient_equal_a_naive_float64_sum(batch, counts, corpus, changes):
    objective, size = Cooccurrence(**changes), corpus.vocabulary.size
    encoder = make_encoder(size=size)
    table = table_of(counts, size, np.float64)
    module = Regression(objective, table, corpus.vocabulary.is_special, encoder)
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(4, 96, 32, generator=rng, dtype=torch.float64, requires_grad=True)
    output = encoder.model.get_output_embeddings().weight
    wanted = [states, output] if objective.against == "output" else [states]
    empty = torch.zeros(0)
    encoded = Encoded(batch=batch, name="gc", states=states, losses=empty, correct=empty)
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


@pytest.mark.parametrize("side", ["site", "neighbour"])
def test_a_detached_side_gets_no_gradient(batch, counts, corpus, side):
    objective, size = Cooccurrence(against="output", detach=side), corpus.vocabulary.size
    encoder = make_encoder(size=size)
    module = Regression(objective, table_of(counts, size), corpus.vocabulary.is_special, encoder)
    states = torch.ones(4, 96, 32, dtype=torch.float64, requires_grad=True)
    output = encoder.model.get_output_embeddings().weight
    empty = torch.zeros(0)
    encoded = Encoded(batch=batch, name="gc", states=states, losses=empty, correct=empty)
    total = module.loss(encoded).total
    gradients = torch.autograd.grad(total, [states, output], allow_unused=True)
    assert [gradient is None for gradient in gradients] == [side == "site", side == "neighbour"]


def test_it_counts_the_hidden_tokens_of_its_hosts(batch):
    assert batch.counts["mlm"] > 0
    assert batch.counts["tlm"] > 0
    assert batch.counts["cooccurrence"] == batch.counts["mlm"] + batch.counts["tlm"]


def run_config(**changes):
    stream = TextStream(objectives=("mlm", "cooccurrence"))
    stages = (StageConfig(steps=30, streams={"text": stream}),)
    return driver.config(stages=stages, **changes)


def test_a_run_with_it_lowers_both_losses_and_validates(corpus, tmp_path):
    steps: list[Step] = []
    pretrain(run_config(), corpus, tmp_path, on_step=steps.append)
    for name in ("mlm", "cooccurrence"):
        losses = [step.losses[name] for step in steps]
        assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert steps[0].counts["mlm"] == steps[0].counts["cooccurrence"]
    assert steps[-1].metrics["cooccurrence/seen"] > 0.9
    metrics = (tmp_path / "metrics.jsonl").read_text()
    assert "valid/cooccurrence/mean loss" in metrics
    assert "valid/mlm/mean perplexity" in metrics


def test_a_stream_without_a_host_is_refused():
    stream = TextStream(objectives=("cooccurrence",))
    config = driver.config(stages=(StageConfig(steps=1, streams={"text": stream}),))
    with pytest.raises(RecipeError, match="Add 'mlm'"):
        objectives_of(config)


@pytest.mark.parametrize(
    "settings",
    [
        ("mlm-gc-tiny", ()),
        ("ablations/mlm-gc-tiny+tlm", ()),
        ("ablations/mlm-gc-tiny-output", ()),
        ("ablations/mlm-gc-tiny-alone", ()),
        ("ablations/mlm-gc-tiny-pmi", ("objectives.mlm.masking.pmi.least=4",)),
        ("ablations/mlm-gc-tiny-albert", ("stages.0.streams.text.languages=[aa]",)),
    ],
    ids=lambda value: value[0],
)
def test_every_kind_of_recipe_trains(corpus, tmp_path, settings):
    name, changes = settings
    recipe = load_recipe(name, list(changes))
    shape = replace(recipe.model, layers=1, hidden=32, heads=2)
    recipe = replace(
        recipe,
        model=shape,
        stages=tuple(replace(stage, steps=3) for stage in recipe.stages),
        watch=replace(recipe.watch, validate_every=0, validate_most=3),
    )
    steps: list[Step] = []
    outcome = pretrain(recipe, corpus, tmp_path, on_step=steps.append)
    assert outcome.finished
    assert all(math.isfinite(loss) for step in steps for loss in step.losses.values())


def test_alone_it_leaves_the_head_as_it_was(corpus, tmp_path):
    """MLM only chooses the tokens: with weight 0 no gradient comes from its predictions."""
    recipe = load_recipe("ablations/mlm-gc-tiny-alone")
    shape = replace(recipe.model, layers=1, hidden=32, heads=2)
    stages = tuple(replace(stage, steps=2) for stage in recipe.stages)
    recipe = replace(
        recipe,
        model=shape,
        stages=stages,
        watch=replace(recipe.watch, validate_every=0, validate_most=3),
    )
    outcome = pretrain(recipe, corpus, tmp_path)
    assert outcome.model is not None
    model = AutoModelForMaskedLM.from_pretrained(outcome.model)
    assert not model.lm_head.bias.detach().any(), "the head's bias begins at 0"


def test_neighbours_of_any_batch():
    """Two padded sentences a row of their own: all that is needed is where tokens stand."""
    layout = Layout(
        groups=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), positions=torch.tensor([0, 1, 2, 3] * 2)
    )
    ordinary = torch.tensor([True] * 6 + [False] * 2)
    near = neighbours(layout, torch.tensor([0, 3, 4, 5]), ordinary, 2)
    found = [
        [place for place, there in zip(*row, strict=True) if there]
        for row in zip(near.places.tolist(), near.there.tolist(), strict=True)
    ]
    assert found == [[1, 2], [1, 2], [5], [4]]
