"""One step, however it is split, is the gradient of the slow and obvious loss."""

import gc
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from safetensors.torch import load_file

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.accumulation import COUNT, loss_scales
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.runtime import NonFiniteError, any_process, make_accelerator
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext, _means, training_steps
from isoglot.recipe import load_recipe
from isoglot.types import Cursor

OBJECTIVES = {"mlm": MLM(weight=0.7), "tlm": TLM(weight=1.3)}
STREAMS = {
    "text": TextStream(objectives=("mlm",), share=0.7),
    "parallel": ParallelStream(objectives=("tlm",), share=0.3),
}
WEIGHTS = {name: objective.weight for name, objective in OBJECTIVES.items()}


@pytest.fixture
def accelerator():
    return Accelerator(cpu=True)


def make_train_module(corpus, dtype=torch.float64, dropout=0.0):
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96, dropout=dropout
    )
    encoder = Encoder.build(settings, corpus.vocabulary)
    return TrainModule(encoder, OBJECTIVES, corpus).to(dtype)


def make_loader(corpus, **shape):
    settings = BatchConfig(**{"rows": 8, "micro_rows": 2, "row_length": 96, **shape})
    opened = open_streams(corpus, STREAMS, OBJECTIVES, row_length=96)
    return Loader(corpus, opened, settings)


class Asked:
    """A stop signal that answers from a list."""

    def __init__(self, answers):
        self.answers = iter(answers)

    @property
    def requested(self):
        return next(self.answers)

    def announce(self):
        self.announced = True


def stage_of(train_module, *, steps=1, loss=None, clip=None, looks=None, asked=None, **settings):
    config = OptimizerConfig(learning_rate=0.0, max_grad_norm=clip)
    if looks is not None:
        settings["schedule"] = SimpleNamespace(needs_sync=looks)
    if asked is not None:
        settings["stop"] = Asked(asked)
    return StageContext(
        module=train_module,
        wrapped=train_module,
        optimizer=make_optimizer(train_module.parameters(), config),
        optimizer_config=config,
        loss=loss or LossConfig(),
        objectives=OBJECTIVES,
        steps=steps,
        seed=0,
        **settings,
    )


def obvious_sums(train_module, batches):
    """Each objective's summed cross-entropy and count, sequence by sequence, logits everywhere."""
    model = train_module.encoder.model
    sums = {name: torch.zeros((), dtype=torch.float64) for name in OBJECTIVES}
    counts = dict.fromkeys(OBJECTIVES, 0)
    for batch in batches:
        rows = batch.rows
        targets = torch.full_like(rows.ids.flatten(), -100)
        owner = torch.full_like(targets, -1)
        for number, name in enumerate(OBJECTIVES):
            start, stop = batch.target_slices[name]
            targets[batch.target_positions[start:stop]] = batch.targets[start:stop]
            owner[batch.target_positions[start:stop]] = number
        targets, owner = targets.view_as(rows.ids), owner.view_as(rows.ids)
        for row in range(len(rows.ids)):
            for sequence in range(int(rows.sequences[row].max()) + 1):
                chosen = rows.sequences[row] == sequence
                logits = model(
                    input_ids=rows.ids[row][chosen][None],
                    position_ids=rows.positions[row][chosen][None]
                    + train_module.encoder.first_position,
                ).logits[0]
                for number, name in enumerate(OBJECTIVES):
                    here = owner[row][chosen] == number
                    if here.any():
                        sums[name] = sums[name] + F.cross_entropy(
                            logits[here], targets[row][chosen][here], reduction="sum"
                        )
                        counts[name] += int(here.sum())
    return sums, counts


@pytest.mark.parametrize("weighting", ["mean", "targets"])
def test_a_step_has_the_gradient_of_the_obvious_loss(corpus, accelerator, weighting):
    train_module = make_train_module(corpus)
    batches = next(make_loader(corpus).steps(Cursor()))
    sums, counts = obvious_sums(train_module, batches)
    if weighting == "mean":
        loss = sum(WEIGHTS[name] * sums[name] / counts[name] for name in sums)
    else:
        loss = sum(WEIGHTS[name] * sums[name] for name in sums) / sum(counts.values())
    weights = {n: p for n, p in train_module.named_parameters() if p.requires_grad}
    expected = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
    stage = stage_of(train_module, loss=LossConfig(weighting=weighting))
    (step,) = training_steps(stage, iter([batches]), accelerator)
    assert step.counts == counts
    for name, value in sums.items():
        assert step.losses[name] == pytest.approx(value.item() / counts[name], rel=1e-9)
    for name, weight in weights.items():
        assert weight.grad is not None
        assert torch.allclose(weight.grad, expected[name], rtol=1e-6, atol=1e-12), name


def test_the_gradient_does_not_depend_on_the_split(corpus, accelerator):
    """The rows of four uneven micro-batches, and the same rows in one."""
    train_module = make_train_module(corpus)
    batches = next(make_loader(corpus).steps(Cursor()))
    assert len({batch.num_targets["tlm"] for batch in batches}) > 1, "uneven"
    gradients = []
    for micro in (batches, [joined(batches)]):
        (step,) = training_steps(stage_of(train_module), iter([micro]), accelerator)
        gradients.append([p.grad.clone() for p in train_module.parameters() if p.grad is not None])
        assert step.num_tokens == sum(batch.num_tokens for batch in batches)
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-13)


def joined(batches):
    """Several micro-batches as one."""
    first = batches[0]
    length = first.rows.ids.numel()
    rows = {n: torch.cat([getattr(b.rows, n) for b in batches]) for n in first.rows.tensors()}
    positions, targets, spans = [], [], {}
    filled = 0
    for name in first.target_slices:
        begin = filled
        for number, batch in enumerate(batches):
            start, stop = batch.target_slices[name]
            positions.append(batch.target_positions[start:stop] + number * length)
            targets.append(batch.targets[start:stop])
            filled += stop - start
        spans[name] = (begin, filled)
    return replace(
        first,
        rows=type(first.rows)(**rows),
        target_positions=torch.cat(positions),
        targets=torch.cat(targets),
        target_weights=torch.ones(filled),
        target_slices=spans,
        num_targets={name: stop - start for name, (start, stop) in spans.items()},
        num_tokens=sum(batch.num_tokens for batch in batches),
    )


def test_padding_the_sites_changes_nothing(corpus, accelerator):
    found = []
    for fixed in (False, True):
        opened = open_streams(corpus, STREAMS, OBJECTIVES, row_length=96)
        shape = BatchConfig(rows=4, micro_rows=4, row_length=96)
        loader = Loader(corpus, opened, shape, pad_targets=fixed)
        train_module = make_train_module(corpus)
        (step,) = training_steps(stage_of(train_module), loader.steps(Cursor()), accelerator)
        found.append((step.losses, step.metrics, step.gradient_norm))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    assert found[0][1] == found[1][1]
    assert found[0][2] == pytest.approx(found[1][2], rel=1e-9)


def test_dropout_is_a_function_of_the_step(corpus, accelerator):
    batches = next(make_loader(corpus).steps(Cursor()))
    losses = []
    for noise in (1, 2):
        train_module = make_train_module(corpus, torch.float32, dropout=0.3)
        torch.manual_seed(noise)
        stage = stage_of(train_module, steps=2)
        losses.append([s.losses for s in training_steps(stage, iter([batches] * 2), accelerator)])
    assert losses[0] == losses[1]
    assert losses[0][0] != losses[0][1]


def test_a_loss_that_is_not_finite_stops_and_leaves_the_batch(corpus, accelerator, tmp_path):
    train_module = make_train_module(corpus)
    with torch.no_grad():
        train_module.encoder.model.get_input_embeddings().weight[50:] = float("nan")
    batches = next(make_loader(corpus).steps(Cursor()))
    stage = stage_of(train_module, dump_folder=tmp_path)
    with pytest.raises(NonFiniteError, match=r"step 1: .*not finite.*Lower optimizer") as caught:
        list(training_steps(stage, iter([batches]), accelerator))
    (file,) = tmp_path.glob("not-finite-step-1-*.safetensors")
    assert str(file) in str(caught.value)
    assert torch.equal(load_file(file)["0.ids"], batches[0].rows.ids)


def test_or_it_skips_the_update(corpus, accelerator):
    train_module = make_train_module(corpus)
    batches = next(make_loader(corpus).steps(Cursor()))
    head = train_module.encoder.model.lm_head.bias
    with torch.no_grad():
        head[60] = float("inf")
    before = {n: p.clone() for n, p in train_module.named_parameters()}
    stage = stage_of(train_module, loss=LossConfig(not_finite="skip"))
    stage.optimizer_config = replace(stage.optimizer_config, learning_rate=1.0)
    (step,) = training_steps(stage, iter([batches]), accelerator)
    assert step.skipped
    assert all(torch.equal(before[n], p) for n, p in train_module.named_parameters())


def test_stopping_is_heeded_before_the_next_step(corpus, accelerator):
    train_module = make_train_module(corpus)
    batches = next(make_loader(corpus).steps(Cursor()))
    stage = stage_of(train_module, steps=10, asked=[False, False, False, True])
    taken = list(training_steps(stage, iter([batches] * 4), accelerator))
    assert [step.step for step in taken] == [1, 2, 3], "the fourth was sent ahead, and is not taken"


def trained(corpus, accelerator, *, looks, bad=(), steps=6, clip=1.0):
    """Steps told, and the weights at every step that somebody looks at and at the end."""
    train_module = make_train_module(corpus, dropout=0.1)
    drawn = []
    for number, micro in enumerate(islice(make_loader(corpus).steps(Cursor()), steps)):
        factor = float("inf") if number + 1 in bad else 1.0
        drawn.append(
            [replace(batch, target_weights=batch.target_weights * factor) for batch in micro]
        )
    stage = stage_of(
        train_module, steps=steps, loss=LossConfig(not_finite="skip"), clip=clip, looks=looks
    )
    stage.optimizer_config = replace(stage.optimizer_config, learning_rate=1e-2)
    told, seen, met = [], {}, []
    train_module.register_forward_pre_hook(
        lambda *_: met.append([weight.clone() for weight in train_module.parameters()])
    )
    for step in training_steps(stage, iter(drawn), accelerator):
        told.append(replace(step, seconds=0.0))
        if looks(step.step):
            seen[step.step] = [weight.clone() for weight in train_module.parameters()]
    for number, then in seen.items():  # what is looked at is what the next step meets
        following = (
            met[number * len(drawn[0])] if number < steps else list(train_module.parameters())
        )
        assert all(map(torch.equal, then, following)), "the weights wait for who looks at them"
    return told, seen, list(train_module.parameters()), stage.optimizer


@pytest.mark.parametrize("bad", [(), (3,), (1, 5, 6)])
def test_steps_that_are_read_late_are_the_same_steps(corpus, accelerator, bad):
    told, seen, weights, optimizer = trained(corpus, accelerator, looks=lambda _: True, bad=bad)
    assert [step.step for step in told if step.skipped] == list(bad)
    for looks in (lambda _: False, lambda step: step in {2, 3, 6}):
        late = trained(corpus, accelerator, looks=looks, bad=bad)
        assert str(late[0]) == str(told)  # as text, where nan is nan
        for step, then in late[1].items():
            assert all(map(torch.equal, then, seen[step]))
        assert all(map(torch.equal, late[2], weights))
        for one, other in zip(late[3].state.values(), optimizer.state.values(), strict=True):
            assert all(torch.equal(one[name], other[name]) for name in other)


@pytest.mark.parametrize("not_finite", ["stop", "skip"])
def test_a_step_is_told_after_the_next_is_on_its_way(corpus, accelerator, not_finite):
    train_module = make_train_module(corpus)
    passes = []
    train_module.register_forward_hook(lambda *_: passes.append(1))
    loader = make_loader(corpus, micro_rows=8)
    loss = LossConfig(not_finite=not_finite)
    stage = stage_of(train_module, steps=4, looks=lambda step: step == 3, loss=loss)
    heard = [
        (step.step, len(passes))
        for step in training_steps(stage, loader.steps(Cursor()), accelerator)
    ]
    assert heard == [(1, 2), (2, 3), (3, 3), (4, 4)]


def test_stopping_tells_of_the_step_that_was_sent_ahead(corpus, accelerator):
    train_module = make_train_module(corpus)
    stage = stage_of(train_module, steps=10, asked=[False, False, True], looks=lambda _: False)
    taken = training_steps(stage, make_loader(corpus).steps(Cursor()), accelerator)
    assert [step.step for step in taken] == [1, 2]


@pytest.mark.parametrize("looks", [lambda _: True, lambda _: False, lambda step: step % 3 == 0])
def test_every_step_has_its_own_time(corpus, accelerator, looks):
    train_module = make_train_module(corpus)
    train_module.register_forward_hook(lambda *_: time.sleep(0.05))
    stage = stage_of(train_module, steps=7, looks=looks)

    started = 0.0

    def slow_batches():
        nonlocal started
        started = time.perf_counter()  # what comes before the first step is no step's
        for batches in make_loader(corpus, micro_rows=8).steps(Cursor()):
            time.sleep(0.05)  # waiting for data is a step's time too
            yield batches

    seconds = []
    for step in training_steps(stage, slow_batches(), accelerator):
        seconds.append(step.seconds)
        if looks(step.step):
            time.sleep(0.1)  # a look takes its time, which is not the step's
            started += 0.1
    assert min(seconds) >= 0.05
    assert min(seconds[:-1]) >= 0.1
    assert sum(seconds) <= time.perf_counter() - started
    assert sum(seconds) == pytest.approx(time.perf_counter() - started, rel=0.2)


def test_what_is_there_is_set_aside_from_collection_while_it_trains(corpus, accelerator):
    counts: list[int] = []
    made: list[list[None]] = []

    def batches():
        """Each step leaves something behind, as compiling does."""
        counts.append(gc.get_freeze_count())
        for batch in make_loader(corpus).steps(Cursor()):
            made.extend([] for _ in range(20_000))
            yield batch

    stage = stage_of(make_train_module(corpus), steps=3)
    counts += [gc.get_freeze_count() for _ in training_steps(stage, batches(), accelerator)]
    before, first, second, _ = counts
    assert before > 100_000, "what was there"
    assert first > before + 19_000, "what the first step left"
    assert second < first + 1000, "and no more"
    assert len(made) == 60_000
    assert gc.get_freeze_count() < 1000  # python itself sets a few aside


class TwoProcesses:
    """An accelerator of two processes that both have the same batches."""

    num_processes, process_index, device = 2, 0, torch.device("cpu")

    def __init__(self):
        self.events = []

    def reduce(self, tensor):
        return tensor * 2

    def no_sync(self):
        """Of a module in DDP."""
        self.events.append("no sync")
        return nullcontext()

    def autocast(self):
        return nullcontext()

    def backward(self, loss):
        self.events.append("backward")
        loss.backward()


def test_two_processes_with_the_same_batches_have_the_gradient_of_one(corpus, accelerator):
    """DDP averages the gradients of processes, and each divides by the counts of both."""
    batches = next(make_loader(corpus).steps(Cursor()))
    found, processes = [], TwoProcesses()
    for one in (accelerator, processes):
        train_module = make_train_module(corpus)
        if one is processes:
            train_module.no_sync = processes.no_sync
        (step,) = training_steps(stage_of(train_module), iter([batches]), one)
        gradients = [p.grad for p in train_module.parameters() if p.grad is not None]
        found.append((step, gradients))
    (alone, gradients), (together, of_both) = found
    # gradients are exchanged once, with the last micro-batch
    assert processes.events == ["no sync", "backward"] * (len(batches) - 1) + ["backward"]
    assert together.counts == {name: 2 * count for name, count in alone.counts.items()}
    assert together.num_tokens == 2 * alone.num_tokens
    assert together.losses == pytest.approx(alone.losses)
    assert together.gradient_norm == pytest.approx(alone.gradient_norm)
    for one, other in zip(gradients, of_both, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-15)


def test_any_process_asks_all_of_them():
    other_is_asked = TwoProcesses()
    other_is_asked.reduce = lambda tensor: tensor + 1  # type: ignore[method-assign]
    assert any_process(other_is_asked, flag=False)
    assert any_process(TwoProcesses(), flag=True)
    assert not any_process(TwoProcesses(), flag=False)


def test_means_are_over_their_own_counts():
    sums = {"a/loss": 6.0, "a/x": 3.0, f"a/x{COUNT}": 2.0, "b/loss": 5.0, f"b/y{COUNT}": 0.0}
    assert _means(sums | {"b/y": 1.0}, {"a": 3, "b": 0}) == {"a/loss": 2.0, "a/x": 1.5}
    assert _means({"b/loss": 5.0}, {"b": 10}) == {"b/loss": 0.5}


def test_scales_of_steps_with_few_targets(corpus):
    train_module = make_train_module(corpus)
    stage = stage_of(train_module)
    assert loss_scales(stage, {"mlm": 0, "tlm": 4}, 0) == {"mlm": 0.7, "tlm": 1.3 / 4}
    stage = stage_of(train_module, loss=LossConfig(weighting="targets"))
    assert loss_scales(stage, {"mlm": 3, "tlm": 7}, 0) == pytest.approx({"mlm": 0.07, "tlm": 0.13})
    assert loss_scales(stage, {"mlm": 0, "tlm": 0}, 0) == WEIGHTS


def test_clipping_scales_the_whole_gradient(corpus, accelerator):
    batches = next(make_loader(corpus).steps(Cursor()))
    gradients, norms = [], []
    for clip in (None, 0.05, 1e6):
        train_module = make_train_module(corpus)
        (step,) = training_steps(stage_of(train_module, clip=clip), iter([batches]), accelerator)
        norms.append(step.gradient_norm)
        gradients.append(
            torch.cat([p.grad.flatten() for p in train_module.parameters() if p.grad is not None])
        )
    free, clipped, loose = gradients
    assert norms == pytest.approx([float(free.norm())] * 3)
    assert float(clipped.norm()) == pytest.approx(0.05, rel=1e-4)
    assert torch.allclose(clipped * (free.norm() / 0.05), free, rtol=1e-4)
    assert torch.equal(loose, free)


def test_the_precision_that_a_recipe_asks_for(tmp_path):
    for precision, expected in (("auto", "no"), ("float32", "no"), ("bf16", "bf16")):
        config = load_recipe("tiny", [f"precision={precision}"])
        made = make_accelerator(config, tmp_path)
        assert made.state._mixed_precision == expected or made.mixed_precision == expected
        AcceleratorState._reset_state(reset_partial_state=True)
