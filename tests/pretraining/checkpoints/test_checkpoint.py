import errno
import hashlib
import json
import os
import resource

import pytest
import torch
from safetensors.torch import save_file

from isoglot.errors import CheckpointError
from isoglot.pretraining.checkpoints import checkpoint_files
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint, latest_valid
from isoglot.pretraining.checkpoints.checkpoint_saver import save
from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.types import Cursor, Draw


class Tied(torch.nn.Module):
    """Tied weights, a buffer, and a weight without gradient: what checkpoints tend to lose."""

    def __init__(self, seed=0, size=5):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(7, size)
        self.out = torch.nn.Linear(size, 7)
        self.out.weight = self.embedding.weight
        self.momentum = torch.nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("queue", torch.randn(4, 2))


def state(total=3):
    cursor = Cursor(step=total, counters=(30, 10), pending=(Draw(0, 29), Draw(1, 9)))
    return TrainState(
        stage=1,
        step=2,
        total_steps=total,
        tokens=99,
        cursor=cursor,
        corpus_fingerprint="c",
        recipe_fingerprint="r",
    )


def trained(name="adamw", seed=0):
    model = Tied(seed)
    optimizer = make_optimizer(model.parameters(), OptimizerConfig(name=name, learning_rate=0.1))
    for _ in range(3):
        optimizer.zero_grad()
        model.out(model.embedding(torch.arange(4))).square().sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_everything_comes_back(tmp_path, name):
    model, optimizer = trained(name)
    place = save(tmp_path, state(), model, optimizer, keep=2)
    other = Tied(1)
    moments = make_optimizer(other.parameters(), OptimizerConfig(name=name, learning_rate=0.1))
    found = Checkpoint(place)
    assert found.state == state()
    found.restore(other, moments)
    assert other.out.weight is other.embedding.weight
    for one, two in ((model, optimizer), (other, moments)):
        two.zero_grad()
        one.out(one.embedding(torch.arange(4))).square().sum().backward()
        two.step()
    for key, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key


def test_only_the_newest_are_kept(tmp_path):
    model, optimizer = trained()
    for total in (3, 6, 9):
        save(tmp_path, state(total), model, optimizer, keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000006", "step-00000009"]


def test_what_was_written_outlives_the_clean_up(tmp_path):
    """Resumed from an older one because the newer are damaged, a run keeps what it writes."""
    model, optimizer = trained()
    for total in (1000, 2000, 3000):
        save(tmp_path, state(total), model, optimizer, keep=3)
    for total in (2000, 3000):
        (tmp_path / f"step-{total:08d}" / "state.json").write_text("damaged")
    place = save(tmp_path, state(1500), model, optimizer, keep=2)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["step-00001000", "step-00001500"]
    sound = latest_valid(tmp_path, pytest.fail)
    assert sound is not None
    assert sound.place == place


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_one_is_refused_and_passed_over(tmp_path, file, damage):
    model, optimizer = trained()
    first = save(tmp_path, state(3), model, optimizer, keep=3)
    second = save(tmp_path, state(6), model, optimizer, keep=3)
    target = second / file
    content = bytearray(target.read_bytes())
    if damage == "flip":
        content[len(content) * 2 // 3] ^= 4
    elif damage == "cut":
        content = content[:-9]
    target.write_bytes(content)
    if damage == "remove":
        target.unlink()
    with pytest.raises(CheckpointError, match=file):
        Checkpoint(second)
    said: list[str] = []
    sound = latest_valid(tmp_path, said.append)
    assert sound is not None
    assert sound.place == first
    assert len(said) == 1
    assert str(target) in said[0]


def test_another_model_is_refused(tmp_path):
    model, optimizer = trained()
    place = save(tmp_path, state(), model, optimizer, keep=1)
    with pytest.raises(CheckpointError, match="another model"):
        Checkpoint(place).restore(Tied(size=6), optimizer)


def test_a_full_disk_leaves_the_one_before(tmp_path, monkeypatch):
    model, optimizer = trained()
    before = save(tmp_path, state(3), model, optimizer, keep=1)
    write = checkpoint_files.write_tensors

    def fail(path, tensors):
        if path.name == "optimizer.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, tensors)

    monkeypatch.setattr(checkpoint_files, "write_tensors", fail)
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path, state(6), model, optimizer, keep=1)
    message = str(caught.value)
    assert "step-00000006" in message
    assert "No space left" in message
    assert f"{before} is untouched" in message
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000003"]
    assert Checkpoint(before).state == state(3)


def test_a_file_size_limit_counts_as_full(tmp_path):
    """The real thing: the operating system refuses to write on."""
    model, optimizer = trained()
    before = save(tmp_path, state(3), model, optimizer, keep=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(CheckpointError, match="cannot be written"):
            save(tmp_path, state(6), model, optimizer, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Checkpoint(before).state == state(3)


def test_another_format_is_named(tmp_path):
    model, optimizer = trained()
    place = save(tmp_path, state(), model, optimizer, keep=1)
    file = place / "state.json"
    content = json.loads(file.read_text().split("\n", 1)[1])
    content["format"] = 99
    text = json.dumps(content)
    file.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n")
    with pytest.raises(CheckpointError, match="has format 99"):
        Checkpoint(place)


def test_a_run_whose_checkpoints_are_all_damaged_is_left_alone(tmp_path):
    """Starting at step 0 would delete them and empty metrics.jsonl."""
    model, optimizer = trained()
    for total in (3, 6):
        place = save(tmp_path, state(total), model, optimizer, keep=2)
        (place / "weights.safetensors").write_bytes(b"")
    notes: list[str] = []
    with pytest.raises(CheckpointError, match="has 2 checkpoints and all of them are damaged"):
        latest_valid(tmp_path, notes.append)
    assert len(notes) == 2


def test_a_checkpoint_of_another_format_is_not_taken_for_damaged(tmp_path):
    model, optimizer = trained()
    save(tmp_path, state(3), model, optimizer, keep=2)
    newest = save(tmp_path, state(6), model, optimizer, keep=2) / "state.json"
    text = newest.read_text().split("\n", 1)[1].rstrip("\n").replace('"format": 3', '"format": 1')
    newest.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n")
    with pytest.raises(CheckpointError, match="has format 1"):
        latest_valid(tmp_path, pytest.fail)


def rewritten(place, change):
    """state.json with other content and the hash that belongs to it."""
    file = place / "state.json"
    text = file.read_text(encoding="utf-8").split("\n", 1)[1].removesuffix("\n")
    text = change if isinstance(change, str) else json.dumps({**json.loads(text), **change})
    digest = hashlib.sha256(text.encode()).hexdigest()
    file.write_text(f"{digest}\n{text}\n", encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        "5",
        "[]",
        "{}",
        "nonsense",
        "[" * 100_000,
        {"sha256": 5},
        {"cursor": None},
        {"cursor": {"step": 1}},
        {"cursor": {"step": 1, "counters": 5, "pending": []}},
        {"cursor": {"step": 1, "counters": ["x"], "pending": []}},
        {"cursor": {"step": 1, "counters": [1], "pending": [5]}},
        {"stage": "1"},
        {"step": -1},
        {"tokens": None},
        {"total_steps": 1.5},
        {"corpus_fingerprint": 5},
    ],
)
def test_a_state_with_the_right_hash_and_other_content_is_refused(tmp_path, change):
    place = save(tmp_path, state(), *trained(), keep=2)
    rewritten(place, change)
    with pytest.raises(CheckpointError, match="is not the state of a checkpoint"):
        Checkpoint(place)
    warnings: list[str] = []
    with pytest.raises(CheckpointError, match="all of them are damaged"):
        latest_valid(tmp_path, warnings.append)
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"aliases": {"a": "nowhere"}},
        {"aliases": 5},
        {"optimizer": {}},
        {"optimizer": {"state": {}, "groups": 5}},
        {"optimizer": {"state": 5, "groups": []}},
    ],
)
def test_weights_that_do_not_fit_their_state_are_refused(tmp_path, change):
    model, optimizer = trained()
    place = save(tmp_path, state(), model, optimizer, keep=2)
    rewritten(place, change)
    with pytest.raises(CheckpointError, match="written by another model"):
        Checkpoint(place).restore(model, optimizer)


def lies(**changes):
    """A change of what state.json has of a tensor, with the hash that belongs to it."""

    def change(place):
        file = place / "state.json"
        content = json.loads(file.read_text(encoding="utf-8").split("\n", 1)[1])
        content["tensors"]["weights"]["embedding.weight"] |= changes
        rewritten(place, {"tensors": content["tensors"]})

    return change


WEIGHTS = "weights.safetensors"


@pytest.mark.parametrize(
    "change",
    [
        lies(shape=[7, 6]),
        lies(shape=[7, -5]),
        lies(shape=[7, True]),
        lies(shape=5),
        lies(shape=[10**15], parts=[[WEIGHTS, [0], [10**15]]]),
        lies(shape=[2**40, 2**40], parts=[[WEIGHTS, [0, 0], [2**40, 2**40]]]),
        lies(dtype="F31"),
        lies(dtype=5),
        lies(parts=[]),
        lies(parts=[[WEIGHTS, [0, 0], [7, 5]], [WEIGHTS, [0, 0], [7, 5]]]),
        lies(parts=[[WEIGHTS, [0, 0], [4, 5]], [WEIGHTS, [5, 0], [2, 5]]]),
        lies(parts=[[WEIGHTS, [0, 0], [4, 5]], [WEIGHTS, [3, 0], [4, 5]]]),
        lies(parts=[[WEIGHTS, [0, 0], [4, 3]], [WEIGHTS, [4, 3], [3, 2]]]),
        lies(parts=[[WEIGHTS, [0, 1], [7, 5]]]),
        lies(parts=[[WEIGHTS, [0], [7, 5]]]),
        lies(parts=[["../../step-00000003/weights.safetensors", [0, 0], [7, 5]]]),
        lies(parts=[["/etc/passwd", [0, 0], [7, 5]]]),
        lies(parts=[["weights-00009-of-00009.safetensors", [0, 0], [7, 5]]]),
        lies(parts=[[5, [0, 0], [7, 5]]]),
        lies(parts=[[WEIGHTS, [0, 0]]]),
        lambda place: rewritten(place, {"tensors": {"weights": {}}}),
        lambda place: rewritten(place, {"tensors": {"weights": 5, "optimizer": {}}}),
    ],
)
def test_a_list_of_tensors_that_lies_is_refused(tmp_path, change):
    place = save(tmp_path, state(), *trained(), keep=2)
    change(place)
    with pytest.raises(CheckpointError, match="is not the state of a checkpoint"):
        Checkpoint(place)


@pytest.mark.parametrize("file", ["../weights.safetensors", "/etc/passwd", "state.json", ""])
def test_only_files_of_a_checkpoint_are_hashed(tmp_path, file):
    place = save(tmp_path, state(), *trained(), keep=2)
    rewritten(place, {"sha256": {file: "0" * 64}})
    with pytest.raises(CheckpointError, match="is not the name of a checkpoint's file"):
        Checkpoint(place)


@pytest.mark.parametrize(
    "change",
    [
        lies(shape=[5, 7], parts=[[WEIGHTS, [0, 0], [5, 7]]]),
        lies(dtype="I32"),
        lies(parts=[["optimizer.safetensors", [0, 0], [7, 5]]]),
        lies(parts=[[WEIGHTS, [0, 0], [4, 5]], [WEIGHTS, [4, 0], [3, 5]]]),
    ],
)
def test_a_list_of_tensors_that_is_not_that_of_the_files_is_refused(tmp_path, change):
    model, optimizer = trained()
    place = save(tmp_path, state(), model, optimizer, keep=2)
    change(place)
    with pytest.raises(CheckpointError, match="written by another model"):
        Checkpoint(place).restore(model, optimizer)


def test_the_format_before_is_read(tmp_path):
    """One process wrote two files, without a list of their tensors."""
    model, optimizer = trained()
    place = save(tmp_path, state(), model, optimizer, keep=2)
    content = json.loads((place / "state.json").read_text().split("\n", 1)[1])
    del content["tensors"]
    hashes = {}
    tensors = {kind: Checkpoint(place).read(kind) for kind in ("weights", "optimizer")}
    for kind, found in tensors.items():
        file = place / f"{kind}.safetensors"
        save_file(found, file)
        hashes[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    rewritten(place, json.dumps({**content, "sha256": hashes, "format": 2}))
    other, moments = trained(seed=1)
    Checkpoint(place).restore(other, moments)
    for key, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key
    for weight, own in zip(model.parameters(), other.parameters(), strict=True):
        for key, value in optimizer.state.get(weight, {}).items():
            assert torch.equal(value, moments.state[own][key]), key
