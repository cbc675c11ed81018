"""Learning rates by layer, batches, the selected epoch, and losses that are not finite."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification

from isoglot.errors import CorpusError, ModelError
from isoglot.finetuning import train as training
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.head import Window
from isoglot.finetuning.parameter_groups import layer_depth, parameter_groups
from isoglot.finetuning.predict import predict
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.settings import FinetuneConfig
from isoglot.finetuning.train import (
    BestEpoch,
    PairedBatchSampler,
    paired_windows,
    train,
)
from isoglot.tasks.examples import LabeledText
from tests.finetuning.tasks import questions
from tests.models.tiny import CONFIGS

EXAMPLES = [
    LabeledText(id=str(i), first="kalo mitu " * (i % 3 + 1), label="xy"[i % 2]) for i in range(16)
]


def changes(folder, settings, tmp_path) -> dict[str, float]:
    """How far a training moves the embeddings and the head."""
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    torch.manual_seed(0)
    model = head.load_model()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    best = BestEpoch(None, tmp_path, higher_is_better=True)
    pieces = head.windows(EXAMPLES, training=True)
    train(model, head, pieces, [], settings, seed=0, scratch=tmp_path, best=best)
    moved = {n: float((w.detach() - before[n]).abs().max()) for n, w in model.named_parameters()}
    words = next(moved[name] for name in moved if "word_embeddings" in name)
    return {"words": words, "head": moved["classifier.out_proj.weight"]}


def test_layers_far_below_the_head_move_less(folder, settings, tmp_path):
    plain = changes(folder, settings, tmp_path)
    decayed = changes(folder, replace(settings, layerwise_lr_decay=0.1), tmp_path)
    assert decayed["head"] > 0.5 * plain["head"]
    assert decayed["words"] < 0.01 * plain["words"]


def test_a_warm_up_that_never_ends_moves_little(folder, settings, tmp_path):
    plain = changes(folder, replace(settings, warmup_ratio=0.0), tmp_path)
    warming = changes(folder, replace(settings, warmup_steps=1000), tmp_path)
    assert 0 < warming["words"] < 0.05 * plain["words"]


@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_a_loss_that_is_not_finite_stops_with_step_and_rate(folder, settings, tmp_path, bad):
    settings = replace(settings, warmup_ratio=0.0)
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    model = head.load_model()
    best = BestEpoch(None, tmp_path, higher_is_better=True)
    pieces = head.windows(EXAMPLES, training=True)
    steps = 0

    def spoil(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            with torch.no_grad():
                model.classifier.out_proj.bias[0] = float(bad)

    model.register_forward_pre_hook(spoil)
    said = r"at step 3 of 8 \(learning rate 0.00075\).*--set learning_rate=0.0001\)"
    with pytest.raises(ModelError, match=said):
        train(model, head, pieces, [], settings, seed=0, scratch=tmp_path, best=best)
    with pytest.raises(ModelError, match="logits that are not finite"):
        predict(model, head, EXAMPLES)


def test_pairs_reach_the_model_in_one_batch(folder, settings, tmp_path, monkeypatch):
    settings = replace(settings, epochs=3)
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    seen: list[list[int]] = []
    collate = head.collate

    def spying(pieces: list[Window]):
        seen.append([piece.example for piece in pieces])
        return collate(pieces)

    monkeypatch.setattr(head, "collate", spying)
    pairs = [(0, 9), (3, 4)]
    best = BestEpoch(None, tmp_path, higher_is_better=True)
    pieces = head.windows(EXAMPLES, training=True)
    train(head.load_model(), head, pieces, pairs, settings, seed=0, scratch=tmp_path, best=best)
    assert len(seen) == 3 * 4
    for first, second in pairs:
        assert sum(first in batch and second in batch for batch in seen) == 3


def test_windows_are_paired_as_far_as_both_examples_have_one(folder, settings):
    head = QuestionAnsweringHead(folder, settings, [])
    short, long = questions(1, length=8)[0], questions(1, length=60)[0]
    pieces = head.windows([long, short, long, long], training=True)
    number = sum(piece.example == 0 for piece in pieces)
    assert number > 1
    assert sum(piece.example == 1 for piece in pieces) == 1
    found = paired_windows(pieces, [(0, 1), (2, 3)])
    assert [(pieces[a].example, pieces[b].example) for a, b in found] == [
        (0, 1),
        *[(2, 3)] * number,
    ]
    assert len({index for pair in found for index in pair}) == 2 * len(found)


@settings(max_examples=60, deadline=None)
@given(
    number=st.integers(1, 60),
    pairs=st.integers(0, 20),
    half=st.integers(1, 6),
    seed=st.integers(0, 5),
)
def test_each_index_once_in_an_epoch_and_pairs_in_one_batch(number, pairs, half, seed):
    together = [(2 * i, 2 * i + 1) for i in range(min(pairs, number // 2))]
    batches = PairedBatchSampler(number, 2 * half, seed=seed, pairs=together)
    for _ in range(2):
        found = list(batches)
        assert len(found) == len(batches)
        assert sorted(i for batch in found for i in batch) == list(range(number))
        assert all(len(batch) == 2 * half for batch in found[:-1])
        for first, second in together:
            assert any(first in batch and second in batch for batch in found)


def test_every_epoch_has_its_order_and_the_seed_decides_it():
    one, same, other = (PairedBatchSampler(40, 4, seed=seed) for seed in (0, 0, 1))
    first, second = list(one), list(one)
    assert first != second
    assert list(same) == first
    assert list(other) != first


def test_singles_are_paired_anew_in_each_epoch():
    batches = PairedBatchSampler(20, 2, seed=0, pairs=[(0, 1)])
    first, second = ({frozenset(batch) for batch in batches} for _ in range(2))
    assert frozenset((0, 1)) in first & second
    assert first != second


@pytest.mark.parametrize(
    ("scores", "higher", "epoch"), [([0.1, 0.5, 0.5, 0.3], True, 1), ([0.4, 0.2, 0.3], False, 1)]
)
def test_the_first_of_the_best_epochs_is_put_back(tmp_path, scores, higher, epoch):
    model = torch.nn.Linear(1, 1)
    coming = iter(scores)
    best = BestEpoch(lambda: next(coming), tmp_path, higher_is_better=higher)
    for number in range(len(scores)):
        torch.nn.init.constant_(model.weight, number)
        best.after_epoch(model)
    best.restore(model)
    assert best.epoch == epoch
    assert model.weight.item() == epoch


def test_without_a_judge_the_last_one_stays(tmp_path):
    model = torch.nn.Linear(1, 1)
    best = BestEpoch(None, tmp_path, higher_is_better=True)
    torch.nn.init.constant_(model.weight, 3.0)
    best.after_epoch(model)
    best.restore(model)
    assert best.epoch is None
    assert model.weight.item() == 3.0


SETTINGS = FinetuneConfig(learning_rate=1.0, layerwise_lr_decay=0.5, weight_decay=0.1)


@pytest.mark.parametrize("architecture", ["xlm-r", "bert", "electra", "modernbert"])
def test_the_rate_halves_with_each_layer_down(architecture):
    model = AutoModelForSequenceClassification.from_config(CONFIGS[architecture]())
    groups = parameter_groups(model, SETTINGS)
    rate = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    assert sorted(rate) == sorted(id(weight) for weight in model.parameters())
    by_name = {name: rate[id(weight)] for name, weight in model.named_parameters()}
    for name, value in by_name.items():
        for layer in range(3):
            if f"layer.{layer}." in name or f"layers.{layer}." in name:
                assert value == 0.5 ** (3 - layer), name
    embeddings = [value for name, value in by_name.items() if "embeddings." in name]
    heads = [value for name, value in by_name.items() if name.startswith("classifier")]
    assert set(embeddings) == {0.5**4}
    assert set(heads) == {1.0}


def test_xlm_keeps_each_kind_of_part_in_a_list_of_its_own():
    layers, prefix = 3, "transformer."
    for part in ("attentions.0.q_lin", "ffns.0.lin1", "layer_norm1.0", "layer_norm2.0"):
        assert layer_depth(f"transformer.{part}.weight", prefix, layers) == layers, part
    for part in ("embeddings", "position_embeddings", "layer_norm_emb"):
        assert layer_depth(f"transformer.{part}.weight", prefix, layers) == layers + 1, part


def test_only_matrices_decay():
    model = AutoModelForSequenceClassification.from_config(CONFIGS["xlm-r"]())
    for group in parameter_groups(model, SETTINGS):
        dimensions = {weight.ndim >= 2 for weight in group["params"]}
        assert dimensions == {group["weight_decay"] == 0.1}


def test_the_warm_up_is_a_share_of_all_steps(folder, settings, tmp_path, monkeypatch):
    seen = []
    original = training._training_arguments

    def arguments(*args, **others):
        seen.append(others["warmup_steps"])
        return original(*args, **others)

    monkeypatch.setattr(training, "_training_arguments", arguments)
    short = replace(settings, epochs=2, batch_size=4, warmup_ratio=0.25, warmup_steps=None)
    changes(folder, short, tmp_path)
    assert seen == [2]  # 16 examples in batches of 4, twice: 8 steps


@pytest.mark.parametrize(
    ("precision", "expected"), [("float32", False), ("auto", False), ("bf16", True)]
)
def test_the_precision_on_a_cpu(settings, tmp_path, monkeypatch, precision, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    chosen = replace(settings, precision=precision)
    found = training._training_arguments(chosen, seed=0, scratch=tmp_path, warmup_steps=0)
    assert found.bf16 is expected


def test_choices_must_be_as_many_in_all_examples():
    def example(number):
        choices = tuple("abcd"[:number])
        return SimpleNamespace(choices=choices)

    two: Any = [example(2), example(2)]
    mixed: Any = [example(2), example(3)]
    assert MultipleChoiceHead.labels_of(two) == []
    with pytest.raises(CorpusError, match="2 or 3 alternatives"):
        MultipleChoiceHead.labels_of(mixed)
