"""Token contrast: what it builds, links and losses beside a slow reference, splits, packing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream
from isoglot.corpus import Corpus
from isoglot.errors import RecipeError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.base import ForwardResult, Objective
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.mass import MASS
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.objectives.token_contrast import AlignedTokens, TokenContrast
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.estimates.micro_rows import split_sensitive
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext, StepResult, training_steps
from isoglot.types import IGNORE, Batch, Cursor, Pair, Sequence
from tests.batching.fakes import VOCABULARY
from tests.objectives.laid_out import make_encoder, rows_of
from tests.objectives.naive_moco import sentence_states
from tests.pretraining.splits import joined

NAME = "token_contrast"
UNKNOWN = 3
"""A special token of the vocabulary that stands inside of sentences."""


def pair_of(first: list[int], second: list[int]) -> Pair:
    return Pair(
        first=np.array(first, np.int32),
        second=np.array(second, np.int32),
        first_language=3,
        second_language=4,
    )


def random_pairs(number: int = 12, words: int = 40, longest: int = 40) -> list[Pair]:
    """Pairs of all lengths over few words, so that many ids occur on both sides."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, longest, (number, 2)).tolist()
    return [
        pair_of(*(rng.integers(4, 4 + words, size).tolist() for size in both)) for both in sizes
    ]


def batch_of(pairs: list[Pair], *, per_row: int = 1, before: int = 0) -> Any:
    """Pairs in rows, `per_row` sequences in each, after other sequences in the same rows."""
    objective, rng = TokenContrast(), np.random.default_rng(0)
    built = [one for pair in pairs for one in objective.build(pair, VOCABULARY, rng)]
    others = random_pairs(len(built), longest=9)
    rows, own = [], []
    for start in range(0, len(built), per_row):
        neighbors = [
            TLM().build(others[start], VOCABULARY, np.random.default_rng(number))[0]
            for number in range(before)
        ]
        row = [*neighbors, *built[start : start + per_row]]
        own += [False] * before + [True] * (len(row) - before)
        rows.append(row)
    laid, starts = rows_of(*rows, length=before * 24 + per_row * 44)
    return _batch(laid, built, [at for at, mine in zip(starts, own, strict=True) if mine])


def _batch(rows: Any, built: list[Sequence], starts: list[int]) -> Any:
    """Markers and labels in the order of the sequences, as the builder gives them."""
    markers: dict[str, list[int]] = {}
    labels: dict[str, list[int]] = {}
    for sequence, start in zip(built, starts, strict=True):
        for name, places in sequence.markers.items():
            markers.setdefault(name, []).extend((places + start).tolist())
        for name, numbers in sequence.labels.items():
            labels.setdefault(name, []).extend(numbers.tolist())
    return SimpleNamespace(
        rows=rows,
        markers={NAME: {name: torch.tensor(some) for name, some in markers.items()}},
        labels={NAME: {name: torch.tensor(some) for name, some in labels.items()}},
    )


def random_states(batch: Any, width: int = 6) -> Tensor:
    torch.manual_seed(5)
    shape = (*batch.rows.ids.shape, width)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def result_of(batch: Any, states: Tensor) -> ForwardResult:
    nothing = states.new_zeros(0)
    return ForwardResult(
        batch=batch, name=NAME, hidden_states=states, target_losses=nothing, correct=nothing
    )


@dataclass
class Sentence:
    """The ordinary tokens of one side of a pair."""

    ids: list[int]
    states: list[Tensor]
    priority: list[int]


def sentences_of(batch: Any, states: Tensor, special: tuple[int, ...]) -> list[list[Sentence]]:
    """Both sides of every pair, read from the rows: sequence after sequence, token after token.

    The k-th `pair` marker is in the first side of the k-th pair; the second sides are found by
    their own markers, which pairs without ordinary tokens on both sides do not have.
    """
    rows, length = batch.rows, batch.rows.ids.shape[1]
    found: list[list[Sentence]] = []
    priority = batch.labels[NAME].get("priority", torch.zeros(0)).tolist()
    sequences: dict[str, list[tuple[int, int]]] = {"first tokens": [], "second tokens": []}
    for side, some in sequences.items():
        for place in batch.markers[NAME].get(side, torch.zeros(0)).tolist():
            at = (place // length, int(rows.sequences.flatten()[place]))
            if at not in some:
                some.append(at)
    for both in zip(*sequences.values(), strict=True):
        pair = []
        for row, number in both:
            places = [p for p in range(length) if int(rows.sequences[row, p]) == number]
            places = [p for p in places if int(rows.ids[row, p]) not in special]
            ids = [int(rows.ids[row, p]) for p in places]
            pair.append(Sentence(ids, [states[row, p] for p in places], []))
        pair[0].priority = [priority.pop(0) for _ in pair[0].ids]
        found.append(pair)
    assert not priority
    return found


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return (one @ other) / (one @ one).sqrt() / (other @ other).sqrt()


def links_of(first: Sentence, second: Sentence, least: float) -> list[tuple[int, int]]:
    table = [[cosine(a, b).item() for b in second.states] for a in first.states]
    found = []
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            if value == max(row) and value == max(r[j] for r in table) and value >= least:
                found.append((i, j))
    return found


def naive(pairs: list[list[Sentence]], settings: TokenContrast) -> tuple[Tensor, dict[str, float]]:
    """The sum of the losses of pairs, and the ratios, link by link and candidate by candidate."""
    linked = [links_of(first, second, settings.min_similarity) for first, second in pairs]
    tokens = sum(len(side.ids) for pair in pairs for side in pair)
    ratios = {"aligned": 2 * sum(map(len, linked)) / max(tokens, 1)}
    if settings.negatives == "micro_batch":
        ranked = sorted(
            (-pairs[number][0].priority[i], number, (i, j))
            for number, links in enumerate(linked)
            for i, j in links
        )
        kept = {(number, link) for _, number, link in ranked[: settings.max_tokens]}
        linked = [[one for one in links if (n, one) in kept] for n, links in enumerate(linked)]
    total, correct, count = torch.zeros((), dtype=torch.float64), 0.0, 0
    for pair, links in zip(pairs, linked, strict=True):
        of_pair = []
        for link in links:
            for side in (0, 1):
                query = pair[side].states[link[side]]
                partner = (pair, link[1 - side])
                own = {pair[side].ids[link[side]], pair[1 - side].ids[link[1 - side]]}
                scores = [cosine(query, pair[1 - side].states[partner[1]]) / settings.temperature]
                for other in pairs if settings.negatives == "micro_batch" else [pair]:
                    for token, state in zip(
                        other[1 - side].ids, other[1 - side].states, strict=True
                    ):
                        if token not in own:
                            scores.append(cosine(query, state) / settings.temperature)
                of_pair.append(-torch.log_softmax(torch.stack(scores), dim=0)[0])
                correct += float(bool(scores[0] >= max(scores))) / 2
            count += 1
        if of_pair:
            total = total + torch.stack(of_pair).mean()
    ratios["accuracy"] = correct / count if count else math.nan
    return total, ratios


SETTINGS = {
    "micro-batch": TokenContrast(),
    "pair": TokenContrast(negatives="pair"),
    "cut": TokenContrast(max_tokens=17),
    "similar": TokenContrast(min_similarity=0.7, temperature=0.05),
    "similar in pairs": TokenContrast(negatives="pair", min_similarity=0.7, max_tokens=1),
}


def test_both_sides_are_sequences_and_their_ordinary_tokens_are_marked() -> None:
    pair = pair_of([100, UNKNOWN, 102], list(range(200, 220)))
    first, second = TokenContrast().build(pair, VOCABULARY, np.random.default_rng(0))
    assert first.ids.tolist() == [0, 100, UNKNOWN, 102, 2]
    assert second.ids.tolist() == [0, *range(200, 220), 2]
    assert (set(first.languages.tolist()), set(second.languages.tolist())) == ({3}, {4})
    assert set(first.targets.tolist()) | set(second.targets.tolist()) == {IGNORE}
    assert {name: one.tolist() for name, one in first.markers.items()} == {
        "pair": [0],
        "first tokens": [1, 3],
    }
    assert {name: one.tolist() for name, one in second.markers.items()} == {
        "second tokens": list(range(1, 21))
    }
    assert first.labels["number of tokens"].tolist() == [2, 20]
    assert set(first.labels) == {"number of tokens", "priority", "width 32"}
    assert not second.labels


@pytest.mark.parametrize(
    ("size", "width"), [(1, 16), (16, 16), (17, 32), (32, 32), (33, 64), (500, 512)]
)
def test_a_pair_is_padded_to_a_power_of_two(size: int, width: int) -> None:
    for sizes in ((size, 1), (1, size)):
        pair = pair_of(*([9] * one for one in sizes))
        first, _ = TokenContrast().build(pair, VOCABULARY, np.random.default_rng(0))
        assert f"width {width}" in first.labels


@pytest.mark.parametrize("variant", SETTINGS)
def test_loss_gradient_and_ratios_are_the_obvious_ones(variant: str) -> None:
    settings, batch = SETTINGS[variant], batch_of(random_pairs())
    states = random_states(batch)
    found = AlignedTokens(settings).loss(result_of(batch, states))
    total, ratios = naive(sentences_of(batch, states, VOCABULARY.special), settings)
    assert found.total.dtype == torch.float64
    assert found.total.item() == pytest.approx(total.item(), rel=1e-9, abs=1e-9)
    assert total.item() > 0.1
    gradients = [torch.autograd.grad(one, states)[0] for one in (found.total, total)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)
    for name, value in ratios.items():
        part, count = found.ratios[name]
        assert part.item() / count.item() == pytest.approx(value, rel=1e-9), name
    links = found.ratios["aligned"][0].item() / 2
    contrasted = found.ratios["accuracy"][1].item()
    assert contrasted == (17 if variant == "cut" else links) > 10
    assert 0 < (found.ratios["chance"][0] / contrasted).item() < 1


def test_all_of_many_negatives_are_wrong_answers_and_chance_says_how_many() -> None:
    pairs = [pair_of([10, 11], [20, 21, 22]), pair_of([12], [23])]
    batch = batch_of(pairs)
    states = random_states(batch)
    part, count = (
        AlignedTokens(TokenContrast(min_similarity=-1.0))
        .loss(result_of(batch, states))
        .ratios["chance"]
    )
    # one of four second tokens, one of three first ones
    assert (part / count).item() == pytest.approx((1 / 4 + 1 / 3) / 2)


def test_which_links_are_cut_depends_on_no_generator_of_torch_and_no_order_of_pairs() -> None:
    settings, pairs = TokenContrast(max_tokens=9), random_pairs()
    batch, states = batch_of(pairs), None
    totals = []
    for seed, turned in ((0, False), (1, False), (0, True)):
        torch.manual_seed(seed)
        given = _turned(batch) if turned else batch
        states = random_states(batch) if states is None else states
        torch.manual_seed(seed)
        totals.append(AlignedTokens(settings).loss(result_of(given, states)).total.item())
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-12)


def _turned(batch: Any) -> Any:
    """The same pairs in the opposite order, in the same places of the rows."""
    counts = batch.labels[NAME]["number of tokens"].view(-1, 2)
    labels, markers = dict(batch.labels[NAME]), dict(batch.markers[NAME])
    for number, name in enumerate(("first tokens", "second tokens")):
        parts = markers[name].split(counts[:, number].tolist())
        markers[name] = torch.cat(parts[::-1])
    parts = labels["priority"].split(counts[:, 0].tolist())
    labels |= {"priority": torch.cat(parts[::-1]), "number of tokens": counts.flip(0).flatten()}
    return SimpleNamespace(rows=batch.rows, markers={NAME: markers}, labels={NAME: labels})


@pytest.mark.parametrize("negatives", ["micro_batch", "pair"])
def test_tokens_with_the_ids_of_query_or_partner_are_no_negatives(negatives: Any) -> None:
    """By gradient: of three second tokens, the one with another id alone is a negative of a."""
    a, x, other = 10, 20, 30
    batch = batch_of([pair_of([a], [x, a, x, other])])
    states = torch.zeros(*batch.rows.ids.shape, 3, dtype=torch.float64)
    first, second = batch.markers[NAME]["first tokens"], batch.markers[NAME]["second tokens"]
    flat = states.flatten(0, 1)
    flat[first] = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    flat[second] = torch.tensor(
        [[1.0, 0.1, 0.0], [1.0, 0.5, 0.3], [1.0, 0.3, 0.5], [1.0, 0.2, 0.9]], dtype=torch.float64
    )
    states.requires_grad_()
    found = AlignedTokens(TokenContrast(negatives=negatives)).loss(result_of(batch, states))
    (gradient,) = torch.autograd.grad(found.total, states)
    has_gradient = (gradient.flatten(0, 1)[second].abs().sum(dim=1) > 0).tolist()
    assert has_gradient == [True, False, False, True]
    assert (found.ratios["chance"][0]).item() == pytest.approx((1 / 2 + 1) / 2)


@pytest.mark.parametrize("variant", SETTINGS)
def test_a_pair_without_links_has_a_loss_of_zero_and_counts_as_a_pair(variant: str) -> None:
    """Opposite states, and a sentence of special tokens alone."""
    settings = replace(SETTINGS[variant], min_similarity=0.5)
    pairs = [pair_of([50, 51], [60]), *random_pairs(3), pair_of([UNKNOWN], [70])]
    batch = batch_of(pairs)
    assert len(batch.markers[NAME]["pair"]) == 5
    assert len(batch.labels[NAME]["number of tokens"]) == 2 * 4
    states = random_states(batch).detach()
    flat, markers = states.flatten(0, 1), batch.markers[NAME]
    flat[markers["first tokens"][:2]] = -flat[markers["second tokens"][0]]
    states.requires_grad_()
    found = AlignedTokens(settings).loss(result_of(batch, states))
    total, _ = naive(sentences_of(batch, states, VOCABULARY.special), settings)
    assert found.total.item() == pytest.approx(total.item(), rel=1e-9)
    alone = batch_of(pairs[:1])
    states = random_states(alone).detach()
    states.flatten(0, 1)[alone.markers[NAME]["first tokens"]] = -states.flatten(0, 1)[
        alone.markers[NAME]["second tokens"]
    ]
    states.requires_grad_()
    nothing = AlignedTokens(settings).loss(result_of(alone, states))
    (gradient,) = torch.autograd.grad(nothing.total, states)
    assert nothing.total.item() == 0
    assert not gradient.any()
    assert nothing.ratios["aligned"][0].item() == nothing.ratios["accuracy"][1].item() == 0


def test_micro_batches_without_pairs_or_tokens_tell_the_same_ratios() -> None:
    module = AlignedTokens(TokenContrast())
    batch = batch_of(random_pairs(2))
    full = module.loss(result_of(batch, random_states(batch)))
    special = batch_of([pair_of([UNKNOWN], [70])])
    none = SimpleNamespace(rows=batch.rows, markers={}, labels={})
    for given in (special, none):
        states = random_states(given)
        found = module.loss(replace(result_of(given, states), target_losses=states.flatten()[:0]))
        assert (found.total.item(), list(found.metrics)) == (0, list(full.metrics))
        assert list(found.ratios) == list(full.ratios)
        found.total.backward()


@pytest.mark.parametrize("variant", SETTINGS)
def test_special_tokens_and_other_sequences_take_no_part(variant: str) -> None:
    pairs = [pair_of([UNKNOWN, 5, 6, UNKNOWN], [7, UNKNOWN, 8]), *random_pairs(6)]
    batch = batch_of(pairs, per_row=2, before=2)
    states = random_states(batch)
    found = AlignedTokens(SETTINGS[variant]).loss(result_of(batch, states))
    (gradient,) = torch.autograd.grad(found.total, states)
    has_gradient = gradient.abs().sum(dim=-1).flatten() > 0
    own = torch.zeros_like(has_gradient)
    for marker in ("first tokens", "second tokens"):
        own[batch.markers[NAME][marker]] = True
    assert not has_gradient[~own].any()
    assert not torch.isin(batch.rows.ids.flatten()[own], torch.tensor(VOCABULARY.special)).any()
    assert has_gradient.sum() > 10
    with torch.no_grad():
        states.flatten(0, 1)[~own] *= 7
    again = AlignedTokens(SETTINGS[variant]).loss(result_of(batch, states))
    assert again.total.item() == found.total.item()


@pytest.mark.parametrize("variant", SETTINGS)
def test_row_neighbors_change_nothing(variant: str) -> None:
    """Loss and gradient at the word embeddings, whatever else is in the rows."""
    encoder, pairs = make_encoder(), random_pairs(5)
    module, found = AlignedTokens(SETTINGS[variant]), []
    for per_row, before in ((1, 0), (3, 0), (2, 2)):
        batch = batch_of(pairs, per_row=per_row, before=before)
        total = module.loss(result_of(batch, encoder(batch.rows).hidden)).total
        weight = encoder.model.get_input_embeddings().weight
        found.append((total.item(), torch.autograd.grad(total, weight)[0]))
    assert found[0][0] > 0
    for loss, gradient in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-10)
        torch.testing.assert_close(gradient, found[0][1], rtol=1e-8, atol=1e-11)


def test_losses_of_half_precision_states_are_in_float32() -> None:
    batch = batch_of(random_pairs())
    states = random_states(batch).detach().bfloat16()
    settings = TokenContrast()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = AlignedTokens(settings).loss(result_of(batch, states))
    exact, _ = naive(sentences_of(batch, states.double(), VOCABULARY.special), settings)
    assert found.total.dtype == torch.float32
    assert found.total.item() == pytest.approx(exact.item(), rel=1e-5)


def make_module(corpus: Corpus, objectives: dict[str, Objective]) -> TrainModule:
    torch.manual_seed(0)
    model = ModelConfig(
        size="tiny", num_layers=2, hidden_size=16, num_heads=2, max_positions=96, dropout=0.0
    )
    encoder = Encoder.build(model, corpus.vocabulary)
    module = TrainModule(encoder, objectives, corpus).double()
    for name in objectives:
        module.objective(name).on_stage_start()
    return module.train()


def step_of(corpus: Corpus, objectives: dict[str, Objective], **shape: int) -> list[Batch]:
    stream = ParallelStream(objectives=tuple(objectives), order="shuffled")
    opened = open_streams(corpus, {"parallel": stream}, objectives, row_length=96)
    sizes = {"rows": 8, "micro_rows": 2, "row_length": 96, **shape}
    loader = Loader(corpus, opened, BatchConfig(**sizes))  # type: ignore[arg-type]
    batches: list[Batch] = next(loader.steps(Cursor()))
    return batches


def take_step(
    module: TrainModule, objectives: dict[str, Objective], batches: list[Batch]
) -> tuple[StepResult, dict[str, Tensor]]:
    config = OptimizerConfig(
        learning_rate=0.0, max_grad_norm=None, schedule="constant", warmup_steps=0
    )
    stage = StageContext(
        module=module,
        wrapped=module,
        optimizer=make_optimizer(module.parameters(), config),
        optimizer_config=config,
        loss=LossConfig(),
        objectives=objectives,
        steps=1,
        seed=0,
    )
    (result,) = training_steps(stage, iter([batches]), Accelerator(cpu=True))
    return result, {
        name: one.grad for name, one in module.named_parameters() if one.grad is not None
    }


def states_alone(module: TrainModule, batch: Batch, layer: int | None) -> Tensor:
    """The states of all pairs, each sentence by itself through the plain model."""
    length = batch.rows.ids.shape[1]
    states = torch.zeros(*batch.rows.ids.shape, 16, dtype=torch.float64)
    places = torch.cat([batch.markers[NAME][side] for side in ("first tokens", "second tokens")])
    for row, number in {
        (int(at) // length, int(batch.rows.sequences.flatten()[at])) for at in places
    }:
        chosen = batch.rows.sequences[row] == number
        start = row * length + int(chosen.nonzero()[0])
        states[row, chosen] = sentence_states(module.encoder, batch.rows, start, layer)
    return states


@pytest.mark.parametrize("layer", [None, 0, 1])
@pytest.mark.parametrize("negatives", ["micro_batch", "pair"])
def test_a_training_step_is_the_reference_over_plain_transformers(
    corpus: Corpus, negatives: Any, layer: int | None
) -> None:
    settings = TokenContrast(negatives=negatives, layer=layer)
    objectives: dict[str, Objective] = {NAME: settings}
    module, batches = make_module(corpus, objectives), step_of(corpus, objectives, rows=4)
    result, gradients = take_step(module, objectives, batches)
    special, totals = corpus.vocabulary.special, []
    for batch in batches:
        states = states_alone(module, batch, layer)
        totals.append(naive(sentences_of(batch, states, special), settings)[0])
    count = sum(len(batch.markers[NAME]["pair"]) for batch in batches)
    assert result.counts == {NAME: count}
    mean = torch.stack(totals).sum() / count
    assert result.losses[NAME] == pytest.approx(mean.item(), rel=1e-9)
    weights = dict(module.named_parameters())
    expected = torch.autograd.grad(
        mean, list(weights.values()), allow_unused=True, materialize_grads=True
    )
    for name, gradient in zip(weights, expected, strict=True):
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-6, atol=1e-11)


def test_the_split_of_a_step_changes_nothing_with_negatives_of_the_pair(corpus: Corpus) -> None:
    objectives: dict[str, Objective] = {NAME: TokenContrast(negatives="pair", max_tokens=3)}
    small = step_of(corpus, objectives)
    splits = [small, [joined(small[:1]), joined(small[1:])], [joined(small)]]
    found = [take_step(make_module(corpus, objectives), objectives, list(one)) for one in splits]
    assert len(small) == 4
    for result, gradients in found[1:]:
        assert result.counts == found[0][0].counts
        assert result.losses == pytest.approx(found[0][0].losses, rel=1e-12)
        assert result.metrics == pytest.approx(found[0][0].metrics, rel=1e-12)
        for name, gradient in found[0][1].items():
            torch.testing.assert_close(gradients[name], gradient, rtol=1e-9, atol=1e-13)
    assert found[0][0].losses[NAME] > 0


def test_a_split_is_said_to_matter_where_it_does(corpus: Corpus) -> None:
    objectives: dict[str, Objective] = {NAME: TokenContrast()}
    small = step_of(corpus, objectives)
    losses = [
        take_step(make_module(corpus, objectives), objectives, split)[0].losses[NAME]
        for split in (small, [joined(small)])
    ]
    assert losses[1] > losses[0] * 1.01
    assert split_sensitive({"a": TokenContrast(), "b": TokenContrast(negatives="pair")}) == ["a"]


def test_it_is_trained_beside_other_objectives_on_the_same_pairs(corpus: Corpus) -> None:
    objectives: dict[str, Objective] = {
        "moco": MoCo(queue=QueueConfig(size=8)),
        NAME: TokenContrast(weight=0.5, layer=1),
        "tlm": TLM(),
        "camlm": CAMLM(),
    }
    batches = step_of(corpus, objectives, micro_rows=8)
    result, _ = take_step(make_module(corpus, objectives), objectives, batches)
    assert result.counts[NAME] == result.counts["moco"] > 0
    assert all(math.isfinite(loss) and loss > 0 for loss in result.losses.values())
    for name in ("aligned", "accuracy", "chance"):
        assert 0 < result.metrics[f"{NAME}/{name}"] <= 1
    alone = {NAME: objectives[NAME]}
    only = replace(
        joined(batches),
        target_slices={NAME: (0, 0)},
        num_targets={NAME: result.counts[NAME]},
        aux_rows={},
    )
    again, _ = take_step(make_module(corpus, alone), alone, [only])
    assert again.losses[NAME] == pytest.approx(result.losses[NAME], rel=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TokenContrast(max_tokens=0), "max_tokens must be from 1 to"),
        (lambda: TokenContrast(temperature=0.0), "temperature must be from"),
        (lambda: TokenContrast(min_similarity=1.5), "min_similarity must be from -1 to 1"),
        (
            lambda: TokenContrast(layer=9).build_module(make_encoder(), None),  # type: ignore[arg-type]
            r"objectives\.token_contrast\.layer: 9 does not exist.* from 0 to 4",
        ),
    ],
)
def test_settings_that_cannot_be(make: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        make()


def moved(batch: Any, change: Any) -> Any:
    """The batch with other tensors."""
    return SimpleNamespace(
        rows=batch.rows.map(change),
        markers={NAME: {name: change(one) for name, one in batch.markers[NAME].items()}},
        labels={NAME: {name: change(one) for name, one in batch.labels[NAME].items()}},
    )


@pytest.mark.parametrize("variant", SETTINGS)
def test_shapes_depend_on_no_number_of_the_device(variant: str) -> None:
    """Tensors without numbers are enough: a number or a shape that needs one would raise."""
    full = batch_of(random_pairs())
    with FakeTensorMode() as without_numbers:
        batch = moved(full, without_numbers.from_tensor)
        states = torch.randn(*batch.rows.ids.shape, 6, requires_grad=True)
        found = AlignedTokens(SETTINGS[variant]).loss(result_of(batch, states))
        found.total.backward()
        assert found.total.shape == ()
        assert states.grad is not None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("variant", SETTINGS)
def test_the_host_does_not_wait_for_a_gpu(variant: str) -> None:
    batch = batch_of(random_pairs())
    states = random_states(batch)
    expected = AlignedTokens(SETTINGS[variant]).loss(result_of(batch, states)).total
    on_gpu = moved(batch, lambda tensor: tensor.cuda())
    states = states.detach().cuda().requires_grad_()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = AlignedTokens(SETTINGS[variant]).loss(result_of(on_gpu, states)).total
        found.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)


SHARED = MoCo(
    key_encoder="shared", in_batch_negatives=True, queue=QueueConfig(size=0), pooling="mean"
)


def test_with_the_sequences_of_moco_a_pair_is_encoded_once_and_the_loss_is_the_reference(
    corpus: Corpus,
) -> None:
    settings = TokenContrast(sequences_of="moco", layer=1)
    objectives: dict[str, Objective] = {NAME: settings, "moco": SHARED}
    (batch,) = step_of(corpus, objectives, micro_rows=8)
    (alone,) = step_of(corpus, {"moco": SHARED}, micro_rows=8)
    assert torch.equal(batch.rows.ids, alone.rows.ids)
    assert batch.num_tokens == alone.num_tokens
    assert batch.num_targets == {"moco": alone.num_targets["moco"], NAME: batch.num_targets["moco"]}
    assert torch.equal(batch.markers[NAME]["pair"], batch.markers["moco"]["query"])
    module = make_module(corpus, objectives)
    states = states_alone(module, batch, 1)
    expected, _ = naive(sentences_of(batch, states, corpus.vocabulary.special), settings)
    result, gradients = take_step(module, objectives, [batch])
    assert result.losses[NAME] == pytest.approx(expected.item() / batch.num_targets[NAME], rel=1e-9)
    only, own = take_step(make_module(corpus, {"moco": SHARED}), {"moco": SHARED}, [alone])
    assert result.losses["moco"] == pytest.approx(only.losses["moco"], rel=1e-12)
    assert any(not torch.allclose(gradients[name], own[name]) for name in own)


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ({"moco": MoCo(queue=QueueConfig(size=8))}, "key_encoder: shared"),
        ({"moco": TLM()}, "must be a moco objective"),
        ({}, "must be a moco objective"),
        ({"moco": SHARED, "mass": MASS()}, "model with a decoder"),
    ],
)
def test_sequences_of_other_objectives_are_refused(
    others: dict[str, Objective], sentence: str
) -> None:
    settings = TokenContrast(sequences_of="moco")
    with pytest.raises(RecipeError, match=sentence):
        settings.check_together({**others, NAME: settings})
