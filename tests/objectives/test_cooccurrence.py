"""The regression on co-occurrence: look-up, loss and gradient beside slow references."""

from __future__ import annotations

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
from isoglot.corpus.cooccurrence.pair_table import PairConfig
from isoglot.errors import ModelError, RecipeError
from isoglot.objectives.cooccurrence import (
    Cooccurrence,
    CooccurrenceRegression,
    PairLookup,
)
from isoglot.objectives.masking import Masking
from isoglot.objectives.mass import MASS
from isoglot.objectives.mlm import MLM
from isoglot.objectives.neighbors import TokenLayout
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import StageConfig, objectives_of
from isoglot.pretraining.run import pretrain
from isoglot.pretraining.train_step import StepResult
from isoglot.recipe import load_recipe
from isoglot.types import Cursor, Seq2SeqBatch
from tests.objectives.laid_out import make_encoder
from tests.objectives.naive_cooccurrence import (
    count_of,
    naive_loss,
    naive_term,
    result_of,
    table_of,
)
from tests.pretraining import driver


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


OUTPUT = {"neighbor_vectors": "output_embeddings"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        OUTPUT,
        {**OUTPUT, "normalize_by": "window", "target_objectives": ("mlm",)},
        {**OUTPUT, "lm_head_transform": False},
        {"neighbors": "shown", "log_plus_one": True, "normalize_by": "window"},
        {"neighbors": "masked"},
        {"pairs": PairConfig(window=4), "normalize_by": "none", "scale": False},
        {"pairs": PairConfig(window=1), "x_max": 10.0, "alpha": 0.5, "target_objectives": ("tlm",)},
    ],
    ids=str,
)
def test_loss_and_gradient_equal_a_naive_float64_sum(batch, counts, corpus, changes):
    objective, size = Cooccurrence(**changes), corpus.vocabulary.size
    encoder = make_encoder(size=size)
    table = table_of(counts, size, np.float64)
    module = CooccurrenceRegression(objective, table, corpus.vocabulary, encoder)
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(4, 96, 32, generator=rng, dtype=torch.float64, requires_grad=True)
    wanted = [states]
    if objective.neighbor_vectors == "output_embeddings":
        wanted.append(encoder.model.get_output_embeddings().weight)
        if objective.lm_head_transform:
            wanted.append(encoder.model.lm_head.dense.weight)
    found = module.loss(result_of(batch, states))
    expected, metrics = naive_loss(objective, batch, states, encoder, counts, corpus.vocabulary)
    assert float(found.total.detach()) == pytest.approx(float(expected.detach()), rel=1e-12)
    for mine, theirs in zip(
        torch.autograd.grad(found.total, wanted), torch.autograd.grad(expected, wanted), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)
    for name, sums in metrics.items():
        assert [float(value.detach()) for value in found.ratios[name]] == pytest.approx(sums)
    assert 0.3 < metrics["seen"][0] / metrics["seen"][1] < 0.7


def test_eq_6_reads_the_logits_of_mlm(corpus):
    """H · O is the product that the softmax of MLM reads (Eq. 5), the bias left out."""
    size = corpus.vocabulary.size
    encoder, table = make_encoder(size=size), table_of({(6, 7): 1.0}, size)
    module = CooccurrenceRegression(
        Cooccurrence(neighbor_vectors="output_embeddings", scale=False, x_max=1.0),
        table,
        corpus.vocabulary,
        encoder,
    )
    torch.manual_seed(0)
    states = torch.randn(2, 32, dtype=torch.float64)
    layout = TokenLayout(sentences=torch.zeros(2).long(), positions=torch.arange(2))
    ids, yes = torch.tensor([6, 7]), torch.ones(2, dtype=torch.bool)
    found = module.regress(states, torch.tensor([0]), ids, layout, yes)
    logit = encoder.lm_head(states[:1])[0, 7] - encoder.model.lm_head.bias[7]
    torch.testing.assert_close(found.total, logit**2)  # log X is 0


@pytest.fixture(scope="module")
def padded(corpus):
    """A padded micro-batch of MASS, and states of its decoder."""
    makers = {"mass": MASS(), "cooccurrence": Cooccurrence(target_objectives=("mass",))}
    streams = {"text": TextStream(objectives=("mass", "cooccurrence"), unit="sentence")}
    opened = open_streams(corpus, streams, makers, row_length=32)
    shape = BatchConfig(rows=8, micro_rows=8, row_length=32)
    (found,) = next(Loader(corpus, opened, shape, pad_targets=False).steps(Cursor()))
    assert isinstance(found, Seq2SeqBatch)
    rng = torch.Generator().manual_seed(0)
    shape_of = (*found.decoding.rows.ids.shape, 32)
    return found, torch.randn(shape_of, generator=rng, dtype=torch.float64, requires_grad=True)


def test_the_decoders_states_equal_a_naive_sum_over_fragments(padded, counts, corpus):
    """w_t and w_k are tokens of one fragment; the decoder predicts each one place earlier."""
    batch, states = padded
    objective = Cooccurrence(target_objectives=("mass",), states="decoder")
    encoder, size = make_encoder(size=corpus.vocabulary.size), corpus.vocabulary.size
    module = CooccurrenceRegression(
        objective, table_of(counts, size, np.float64), corpus.vocabulary, encoder
    )
    found = module.loss(result_of(batch, torch.zeros(1, 1, 32, dtype=torch.float64), states)).total
    decoding, expected, number = batch.decoding, states.new_zeros(()), 0
    width = decoding.rows.ids.shape[1]
    fragments: dict[int, list[tuple[int, int]]] = {}
    for place, token in zip(
        decoding.target_positions.tolist(), decoding.targets.tolist(), strict=True
    ):
        fragments.setdefault(place // width, []).append((place % width, token))
    for row, fragment in fragments.items():
        for i, (at, token) in enumerate(fragment):
            terms = []
            for j in (i - 2, i - 1, i + 1, i + 2):
                if 0 <= j < len(fragment) and fragment[j][1] not in corpus.vocabulary.special:
                    other, x = fragment[j][0], count_of(counts, token, fragment[j][1])
                    pair = states[row, at], states[row, other]
                    nothing = states.new_zeros(())
                    terms.append(naive_term(objective, encoder, pair, x) if x else nothing)
            number += len(terms)
            if terms:
                expected = expected + torch.stack(terms).mean()
    assert number > 50
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    mine, theirs = (torch.autograd.grad(loss, states)[0] for loss in (found, expected))
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_a_micro_batch_that_decodes_nothing_has_no_loss(padded, counts, corpus):
    batch, decoder_states = padded
    objective = Cooccurrence(target_objectives=("mass",), states="decoder")
    encoder, size = make_encoder(size=corpus.vocabulary.size), corpus.vocabulary.size
    module = CooccurrenceRegression(objective, table_of(counts, size), corpus.vocabulary, encoder)
    states = torch.zeros(1, 1, 32, requires_grad=True)
    empty = module.loss(result_of(batch, states))
    assert empty.total == 0
    assert empty.total.requires_grad, "all processes go backwards"
    full = module.loss(result_of(batch, states, decoder_states))
    assert (list(empty.metrics), list(empty.ratios)) == (list(full.metrics), list(full.ratios))


def test_the_decoder_is_read_only_where_there_is_one():
    with pytest.raises(RecipeError, match="neighbors: all or masked"):
        Cooccurrence(states="decoder", neighbors="shown")
    objective = Cooccurrence(states="decoder", target_objectives=("mlm",))
    with pytest.raises(RecipeError, match="'mlm' has no decoder"):
        objective.check_together({"mlm": MLM()})
    Cooccurrence(states="decoder", target_objectives=("mass",)).check_together({"mass": MASS()})


def test_tokens_that_the_tokenizer_does_not_have_are_special(corpus, counts):
    """Language tokens, which a model with a decoder adds after the tokenizer's."""
    size = corpus.vocabulary.size
    module = CooccurrenceRegression(
        Cooccurrence(), table_of(counts, size), corpus.vocabulary, make_encoder(size=size + 3)
    )
    expected = [*corpus.vocabulary.special, size, size + 1, size + 2]
    assert module.special.nonzero()[:, 0].tolist() == expected


def test_heads_that_eq_6_cannot_read_are_refused(corpus, counts):
    size = corpus.vocabulary.size
    encoder, table = make_encoder(size=size), table_of(counts, size)
    objective = Cooccurrence(neighbor_vectors="output_embeddings")
    encoder.lm_head.ends_with_output_embeddings = False
    with pytest.raises(ModelError, match="does not end with that product"):
        CooccurrenceRegression(objective, table, corpus.vocabulary, encoder)
    literal = replace(objective, lm_head_transform=False)
    CooccurrenceRegression(literal, table, corpus.vocabulary, encoder)
    encoder.model.config.hidden_size = 48
    with pytest.raises(ModelError, match="width 48 with output embeddings of width 32"):
        CooccurrenceRegression(literal, table, corpus.vocabulary, encoder)


@pytest.mark.parametrize("side", ["target", "neighbor"])
def test_a_detached_side_gets_no_gradient(batch, counts, corpus, side):
    objective, size = (
        Cooccurrence(neighbor_vectors="output_embeddings", detach=side),
        corpus.vocabulary.size,
    )
    encoder = make_encoder(size=size)
    module = CooccurrenceRegression(objective, table_of(counts, size), corpus.vocabulary, encoder)
    states = torch.ones(4, 96, 32, dtype=torch.float64, requires_grad=True)
    output = encoder.model.get_output_embeddings().weight
    total = module.loss(result_of(batch, states)).total
    gradients = torch.autograd.grad(total, [states, output], allow_unused=True)
    assert [gradient is None for gradient in gradients] == [side == "target", side == "neighbor"]


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


TWO_LANGUAGES = (
    "stages.0.streams.text.languages=[aa, bb]",
    "stages.1.streams.text.languages=[aa, bb]",
    "stages.1.streams.text.target_languages=[aa, bb]",
)


@pytest.mark.parametrize(
    "settings",
    [
        ("ablations/mlm-gc-tiny+tlm", ()),
        ("ablations/mlm-gc-tiny-output", ()),
        ("ablations/mlm-gc-tiny-pmi", ("objectives.mlm.masking.pmi.min_count=4",)),
        ("ablations/mlm-gc-tiny-albert", ("stages.0.streams.text.languages=[aa]",)),
        ("unmt-mass-tiny+gc", TWO_LANGUAGES),
        ("unmt-xlm-tiny", TWO_LANGUAGES),
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
    if "cooccurrence" in recipe.objectives_in(0):
        assert all(step.losses["cooccurrence"] > 0 for step in steps[:3])


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
