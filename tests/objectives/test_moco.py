"""Momentum contrast: what it builds, and that what it computes is the slow and obvious thing."""

from collections import deque
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from isoglot.errors import RecipeError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.contrast.info_nce import sentence_item
from isoglot.objectives.contrast.momentum import MomentumConfig, QueueConfig
from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.masking import Masking
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.train_step import training_steps
from isoglot.types import IGNORE, Cursor
from tests.batching.fakes import VOCABULARY
from tests.objectives.naive_moco import (
    keys_of,
    losses_of,
    make_loader,
    make_train_module,
    settings,
    stage_of,
)
from tests.objectives.test_mlm_tlm import PAIR, built

IN_BATCH = settings(key_encoder="shared", in_batch_negatives=True, queue=QueueConfig(size=0))
VARIANTS = {
    "paper": settings(),
    "mean": settings(pooling="mean", projection=ProjectionConfig(normalize="after")),
    "xlco": settings(
        layer=1,
        projection=ProjectionConfig(layers=1, size=None, normalize="none"),
        temperature=0.25,
        masking=Masking(),
    ),
    "in-batch and queue": settings(in_batch_negatives=True),
    "shared": IN_BATCH,
    "shared with a queue": settings(key_encoder="shared", in_batch_negatives=True),
    "no projection": replace(IN_BATCH, projection=ProjectionConfig(layers=0)),
}
IN_BATCH_VARIANTS = ("in-batch and queue", "shared", "shared with a queue")


@pytest.fixture
def accelerator():
    return Accelerator(cpu=True)


def test_it_lays_out_a_query_and_a_key():
    query, key = built(MoCo(), PAIR)
    assert query.ids.tolist() == [0, 100, 101, 102, 103, 2]
    assert key.ids.tolist() == [0, *range(200, 206), 2]
    assert (set(query.languages.tolist()), set(key.languages.tolist())) == ({3}, {4})
    assert (set(query.targets.tolist()), set(key.targets.tolist())) == ({IGNORE}, {IGNORE})
    for role, sequence, sentence in (("query", query, PAIR.first), ("key", key, PAIR.second)):
        assert {name: places.tolist() for name, places in sequence.markers.items()} == {role: [0]}
        assert sequence.labels[role].tolist() == [sentence_item(sentence)]


def test_hidden_tokens_are_not_predicted_and_change_nothing_of_what_a_sentence_is():
    plain, hidden = built(MoCo(), PAIR), built(MoCo(masking=Masking(rate=0.5)), PAIR)
    for one, other in zip(plain, hidden, strict=True):
        assert (one.ids != other.ids).sum() >= 1
        assert (other.ids == VOCABULARY.mask).any()
        assert (other.targets == IGNORE).all()
        assert {n: v.tolist() for n, v in one.labels.items()} == {
            n: v.tolist() for n, v in other.labels.items()
        }


@pytest.mark.parametrize(
    ("variant", "micro_rows"),
    [*((name, 8) for name in VARIANTS), ("paper", 2), *((name, 2) for name in IN_BATCH_VARIANTS)],
)
def test_loss_and_gradient_are_the_obvious_ones(corpus, accelerator, variant, micro_rows):
    """However the step is split: candidates are those of the queue and of the whole step."""
    moco = VARIANTS[variant]
    train_module = make_train_module(corpus, moco, tlm=False)
    loader = make_loader(corpus, moco, tlm=False, micro_rows=micro_rows)
    batches = next(loader.steps(Cursor()))
    assert ("moco" in batches[0].aux_rows) == (moco.key_encoder == "momentum")
    losses = losses_of(train_module, moco, *batches)
    weights = {n: p for n, p in train_module.named_parameters() if p.requires_grad}
    expected = torch.autograd.grad(
        losses.mean(), list(weights.values()), allow_unused=True, materialize_grads=True
    )
    (step,) = training_steps(stage_of(train_module, tlm=False), iter([batches]), accelerator)
    assert step.counts == {"moco": len(losses)}
    assert step.losses["moco"] == pytest.approx(losses.mean().item(), rel=1e-9)
    for (name, weight), gradient in zip(weights.items(), expected, strict=True):
        assert weight.grad is not None
        assert torch.allclose(weight.grad, gradient, rtol=1e-6, atol=1e-11), name


def test_a_symmetric_loss_is_the_mean_of_two_contrasts(corpus):
    moco = replace(IN_BATCH, symmetric=True)
    train_module = make_train_module(corpus, moco, tlm=False)
    (batch,) = next(make_loader(corpus, moco, tlm=False, micro_rows=8).steps(Cursor()))
    sites, labels = batch.markers["moco"], batch.labels["moco"]
    turned = replace(
        batch,
        markers={"moco": {"query": sites["key"], "key": sites["query"]}},
        labels={"moco": {"query": labels["key"], "key": labels["query"]}},
    )
    expected = losses_of(train_module, moco, batch) + losses_of(train_module, moco, turned)
    assert train_module(batch)["moco"].total.item() == pytest.approx(
        expected.sum().item() / 2, rel=1e-9
    )


def test_queue_and_averages_after_steps_are_what_the_steps_say(corpus, accelerator):
    """The queue is a deque of the keys, the key weights the closed-form average."""
    moco = settings(momentum=MomentumConfig(value=0.8))
    train_module = make_train_module(corpus, moco)
    module = train_module.objective("moco")

    def weights():
        return {n: p.detach().clone() for n, p in train_module.encoder.named_parameters()}

    past = [weights()]
    held: deque[list[float]] = deque(module.queue.entries.tolist(), maxlen=40)
    stage = stage_of(train_module, steps=6, rate=1e-3)
    drawn = list(islice(make_loader(corpus, moco).steps(Cursor()), 6))
    steps = training_steps(stage, iter(drawn), accelerator)
    for batches in drawn:
        for batch in batches:
            held.extend(keys_of(train_module, moco, batch).tolist())
        next(steps)
        past.append(weights())
    pointer = int(module.queue.pointer)
    assert int(module.queue.num_filled) == 40
    assert torch.allclose(
        module.queue.entries.roll(-pointer, 0),
        torch.tensor(list(held), dtype=torch.float64),
        rtol=1e-9,
    )
    for name, found in module.key_encoder.module.named_parameters():
        expected = 0.8**6 * past[0][name]
        for t in range(1, 7):
            expected = expected + 0.2 * 0.8 ** (6 - t) * past[t][name]
        assert torch.allclose(found, expected, rtol=1e-10, atol=1e-13), name


@pytest.mark.parametrize("not_finite", ["stop", "skip"])
def test_steps_that_are_sent_ahead_are_the_same_steps(corpus, accelerator, not_finite):
    """Where a bad step ends the run, queue and averages need not wait for the word on it."""
    found = []
    for looks in (lambda _: True, lambda _: False):
        moco = settings(momentum=MomentumConfig(value=0.8))
        train_module = make_train_module(corpus, moco)
        passes: list[int] = []
        train_module.register_forward_hook(lambda *_, passes=passes: passes.append(1))
        stage = stage_of(train_module, steps=5, rate=1e-3)
        stage.schedule = SimpleNamespace(needs_sync=looks)
        stage.loss = LossConfig(not_finite=not_finite)
        batches = make_loader(corpus, moco, micro_rows=8).steps(Cursor())
        heard = [(step.losses, len(passes)) for step in training_steps(stage, batches, accelerator)]
        ahead = not_finite == "stop" and not looks(1)
        assert [number for _, number in heard] == ([2, 3, 4, 5, 5] if ahead else [1, 2, 3, 4, 5])
        found.append(([losses for losses, _ in heard], train_module.state_dict()))
    (told, state), (told_late, state_late) = found
    assert told_late == told
    assert all(torch.equal(tensor, state_late[name]) for name, tensor in state.items())


def test_a_step_that_is_not_taken_moves_nothing(corpus, accelerator):
    moco = settings()
    train_module = make_train_module(corpus, moco)
    with torch.no_grad():
        train_module.encoder.model.lm_head.bias[60] = float("inf")
    before = {n: v.clone() for n, v in train_module.objective("moco").state_dict().items()}
    stage = stage_of(train_module, steps=2, loss=LossConfig(not_finite="skip"))
    steps = list(training_steps(stage, make_loader(corpus, moco).steps(Cursor()), accelerator))
    assert all(step.skipped for step in steps)
    after = train_module.objective("moco").state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_validation_pushes_no_keys(corpus, accelerator):
    moco = settings()
    train_module = make_train_module(corpus, moco)
    steps = make_loader(corpus, moco).steps(Cursor())
    first, second = next(steps), next(steps)
    with torch.no_grad():
        for batch in first:
            assert train_module.eval()(batch)["moco"].total.isfinite()
    train_module.train()
    list(training_steps(stage_of(train_module), iter([second]), accelerator))
    trained_on = torch.cat([batch.labels["moco"]["key"] for batch in second])
    queue = train_module.objective("moco").queue
    assert int(queue.num_filled) == len(trained_on)
    assert torch.equal(queue.items[: len(trained_on), 0], trained_on)


def test_a_sentence_in_the_queue_is_not_told_apart_from_itself(corpus):
    """The same pairs again, with all their keys in the queue: as if the queue lacked them."""
    moco = settings(queue=QueueConfig(size=400, start="empty"))
    losses = {}
    for meets in (False, True):
        changed = replace(moco, allow_false_negatives=meets)
        train_module = make_train_module(corpus, changed)
        (batch,) = next(make_loader(corpus, moco, micro_rows=8).steps(Cursor()))
        train_module(batch)
        train_module.objective("moco").after_step(taken=True)
        assert int(train_module.objective("moco").queue.num_filled) == batch.num_targets["moco"]
        expected = losses_of(train_module, moco, batch)
        losses[meets] = train_module(batch)["moco"].total.item()
        if not meets:
            assert losses[False] == pytest.approx(expected.sum().item(), rel=1e-9)
    assert losses[True] > losses[False] + 0.1


@pytest.mark.parametrize("in_batch", [False, True])
def test_the_translations_of_one_sentence_are_not_told_apart(corpus, in_batch):
    """The query is the same in all pairs, and no key is: nothing is left to be told apart from."""
    start = QueueConfig(size=400, start="empty")
    moco = settings(queue=start, in_batch_negatives=in_batch)
    train_module = make_train_module(corpus, moco, tlm=False)
    (batch,) = next(make_loader(corpus, moco, tlm=False, micro_rows=8).steps(Cursor()))
    keys = torch.arange(batch.num_targets["moco"])
    for number in range(2):
        # the second time, the first's keys are in the queue
        labels = {"query": torch.full_like(keys, 999), "key": keys + 100 * number}
        again = replace(batch, labels={"moco": labels})
        assert train_module(again)["moco"].total.item() == pytest.approx(0.0, abs=1e-9)
        train_module.objective("moco").after_step(taken=True)
    assert int(train_module.objective("moco").queue.num_filled) == 2 * len(keys)
    others = {"query": keys + 2000, "key": keys + 1000}
    assert train_module(replace(batch, labels={"moco": others}))["moco"].total.item() > 1.0


def test_a_queue_is_filled_with_keys_and_nothing_else_moves(corpus):
    moco = settings(queue=QueueConfig(size=60, start="filled"), momentum=MomentumConfig(value=0.5))
    train_module = make_train_module(corpus, moco)
    module = train_module.objective("moco")
    before = {n: v.clone() for n, v in train_module.state_dict().items()}
    assert module.num_warmup_examples() == 60
    steps = make_loader(corpus, moco).steps(Cursor())
    held: deque[list[float]] = deque(maxlen=60)
    sentences: deque[int] = deque(maxlen=60)
    while module.num_warmup_examples():
        batch = next(steps)[0]
        held.extend(keys_of(train_module, moco, batch).tolist())
        sentences.extend(batch.labels["moco"]["key"].tolist())
        assert train_module(batch, warm_up=["moco"]) == {}
    pointer = int(module.queue.pointer)
    expected = torch.tensor(list(held), dtype=torch.float64)
    assert torch.allclose(module.queue.entries.roll(-pointer, 0), expected, rtol=1e-9)
    assert module.queue.items[:, 0].roll(-pointer, 0).tolist() == list(sentences)
    after = train_module.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.rsplit(".", 2)[1] for name in changed} == {"queue"}


def test_a_micro_batch_without_pairs_has_a_loss_of_zero_and_a_place_in_the_queue(
    corpus, accelerator
):
    moco = settings()
    train_module = make_train_module(corpus, moco)
    batches = next(make_loader(corpus, moco).steps(Cursor()))
    empty = replace(
        batches[0], markers={}, aux_markers={}, labels={}, num_targets={"moco": 0, "tlm": 1}
    )
    (step,) = training_steps(stage_of(train_module), iter([[empty, batches[1]]]), accelerator)
    assert step.counts["moco"] == batches[1].num_targets["moco"]
    expected = losses_of(make_train_module(corpus, moco), moco, batches[1]).mean()
    assert step.losses["moco"] == pytest.approx(expected.item())
    assert int(train_module.objective("moco").queue.num_filled) == batches[1].num_targets["moco"]


@pytest.mark.parametrize("dropout", [True, False])
def test_keys_are_encoded_with_dropout_or_without(corpus, dropout):
    moco = settings(key_dropout=dropout)
    train_module = make_train_module(corpus, moco, dropout=0.3)
    module = train_module.objective("moco")
    assert module.training
    assert module.key_encoder.module.training == dropout
    train_module.eval()
    assert not module.key_encoder.module.training


def test_key_weights_begin_as_the_encoders_and_are_not_trained(corpus):
    train_module = make_train_module(corpus, settings())
    with torch.no_grad():
        for weight in train_module.encoder.parameters():
            weight.add_(1.0)
    module = train_module.objective("moco")
    module.on_stage_start()
    own = dict(module.key_encoder.module.named_parameters())
    for name, weight in train_module.encoder.named_parameters():
        assert torch.equal(own[name], weight)
    trained = {n for n, p in train_module.named_parameters() if p.requires_grad}
    assert not any("key_" in name for name in trained)
    assert not any(name.startswith("objectives.moco._") for name in train_module.state_dict())


def test_everything_that_is_an_encoder_is_compiled(corpus, monkeypatch):
    compiled: list[Encoder] = []

    def note(encoder):
        compiled.append(encoder)

    monkeypatch.setattr(Encoder, "compile", note)
    train_module = make_train_module(corpus, settings())
    train_module.compile()
    assert compiled == [train_module.encoder, train_module.objective("moco").key_encoder.module]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "temperature must be from 1e-06"),
        ({"queue": QueueConfig(size=0)}, "moco needs negatives"),
        ({"symmetric": True}, "symmetric needs key_encoder: shared"),
        (
            {"key_encoder": "shared", "queue": QueueConfig(start="filled")},
            "start: filled needs key_encoder: momentum",
        ),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(RecipeError, match=message):
        MoCo(**changes)


def test_a_layer_that_does_not_exist_is_refused(corpus):
    encoder = Encoder.build(ModelConfig(size="tiny", num_layers=2), corpus.vocabulary)
    with pytest.raises(RecipeError, match=r"moco\.layer: 3 does not exist.*from 0 to 2"):
        MoCo(layer=3).build_module(encoder, corpus)


def test_sizes_and_targets_are_told_in_advance():
    sizes = np.array([[3, 5], [7, 2]], np.int32)
    assert MoCo().lengths(sizes).tolist() == [[5, 7], [9, 4]]
    assert MoCo().max_targets(sizes).tolist() == [0, 0]
    assert (MoCo().num_aux_sequences, IN_BATCH.num_aux_sequences) == (1, 0)
