"""Checkpoints that are written while training goes on: copies, errors, one at a time."""

from __future__ import annotations

import errno
import os
import resource
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from rich.console import Console
from torch.testing._internal import two_tensor

from isoglot.errors import CheckpointError
from isoglot.pretraining.checkpoints import checkpoint_files, checkpoint_saver
from isoglot.pretraining.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointConfig,
    folders,
    latest_valid,
)
from isoglot.pretraining.checkpoints.checkpoint_saver import CheckpointSaver, checkpoint_group, save
from isoglot.pretraining.run import pretrain
from tests.pretraining import driver
from tests.pretraining.checkpoints.test_checkpoint import state, trained
from tests.pretraining.groups import Group
from tests.pretraining.launching import last_step

if TYPE_CHECKING:
    from accelerate import Accelerator

NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Disk:
    """A disk that writes once it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        self.go, self.began = threading.Event(), threading.Event()
        write = checkpoint_files.write_tensors

        def slow(path, tensors):
            self.began.set()
            assert self.go.wait(20)
            if fails:
                raise NO_SPACE
            return write(path, tensors)

        monkeypatch.setattr(checkpoint_files, "write_tensors", slow)


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    model, optimizer = trained()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    moments = optimizer.state[model.embedding.weight]["exp_avg"].clone()
    disk, saver = Disk(monkeypatch), CheckpointSaver(tmp_path, CheckpointConfig())
    place = saver.save(state(), model, optimizer)
    assert disk.began.wait(20)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.fill_(7)
        optimizer.state[model.embedding.weight]["exp_avg"].fill_(7)
    assert not place.exists()
    assert not saver.failed
    disk.go.set()
    saver.wait()
    found = Checkpoint(place).read()
    assert all(torch.equal(found[name], before[name]) for name in found)
    assert torch.equal(Checkpoint(place).read("optimizer")["embedding.weight|exp_avg"], moments)


def test_one_checkpoint_is_written_at_a_time(tmp_path, monkeypatch):
    model, optimizer = trained()
    disk, saver = Disk(monkeypatch), CheckpointSaver(tmp_path, CheckpointConfig(keep=1))
    saver.save(state(3), model, optimizer)
    second = threading.Thread(target=saver.save, args=(state(6), model, optimizer))
    second.start()
    second.join(0.2)
    assert second.is_alive(), "it waits for the first"
    disk.go.set()
    second.join(20)
    saver.wait()
    assert [one.name for one in folders(tmp_path)] == ["step-00000006"]


def test_an_error_of_the_thread_is_raised_by_whoever_waits(tmp_path, monkeypatch):
    model, optimizer = trained()
    before = save(tmp_path, state(3), model, optimizer, keep=1)
    disk = Disk(monkeypatch, fails=True)
    saver = CheckpointSaver(tmp_path, CheckpointConfig(keep=1))
    place = saver.save(state(6), model, optimizer)
    assert not saver.failed
    disk.go.set()
    deadline = time.monotonic() + 20
    while not saver.failed and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(CheckpointError) as caught:
        saver.save(state(9), model, optimizer)
    assert str(caught.value) == (
        f"{place}: cannot be written (No space left on device). Free space there and resume; "
        f"{before} is untouched."
    )
    assert [path.name for path in tmp_path.iterdir()] == [before.name]
    assert not saver.failed, "it has been told"


def save_and_raise(saver: CheckpointSaver, error: type[BaseException]) -> None:
    with saver:
        saver.save(state(), *trained())
        raise error


def test_after_an_error_in_training_the_checkpoint_is_finished(tmp_path, monkeypatch):
    disk, saver = Disk(monkeypatch), CheckpointSaver(tmp_path, CheckpointConfig())
    threading.Timer(0.2, disk.go.set).start()
    with pytest.raises(ZeroDivisionError):
        save_and_raise(saver, ZeroDivisionError)
    assert Checkpoint(tmp_path / "step-00000003").state == state()


def test_a_second_signal_does_not_wait(tmp_path, monkeypatch):
    disk, saver = Disk(monkeypatch), CheckpointSaver(tmp_path, CheckpointConfig())
    with pytest.raises(KeyboardInterrupt):
        save_and_raise(saver, KeyboardInterrupt)
    assert not (tmp_path / "step-00000003").exists()
    disk.go.set()


def test_an_unforeseen_error_of_the_thread_is_told(tmp_path, monkeypatch):
    """The other processes would wait for this one."""

    def fail(*_):
        raise KeyError

    monkeypatch.setattr(checkpoint_files, "write_tensors", fail)
    saver = CheckpointSaver(tmp_path, CheckpointConfig())
    saver.save(state(), *trained())
    with pytest.raises(CheckpointError, match=r"cannot be written \(KeyError\)"):
        saver.wait()
    assert list(tmp_path.iterdir()) == []


def test_quantized_tensors_are_not_stored_as_if_they_were_plain(tmp_path):
    model, optimizer = trained()
    weight = model.embedding.weight
    quantized = two_tensor.TwoTensor(torch.ones(7, 5), torch.zeros(7, 5))
    optimizer.state[weight]["exp_avg"] = quantized
    with pytest.raises(CheckpointError, match="exp_avg of the optimizer, a TwoTensor"):
        save(tmp_path, state(), model, optimizer, keep=1)


def test_without_memory_for_a_copy_training_waits(tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(checkpoint_saver, "free_memory", lambda _: 10)
    saver = CheckpointSaver(tmp_path, CheckpointConfig(), note=notes.append)
    place = saver.save(state(), *trained())
    assert Checkpoint(place).state == state(), "it is there already"
    (note,) = notes
    assert "training waits for the checkpoint" in note
    assert "host memory" in note


def test_memory_of_a_copy_is_used_again(tmp_path):
    saver = CheckpointSaver(tmp_path, CheckpointConfig())
    model, optimizer = trained()
    saver.save(state(3), model, optimizer)
    held = saver._buffers._buffers[0].data_ptr(), saver._buffers.num_bytes
    saver.save(state(6), model, optimizer)
    saver.wait()
    assert (saver._buffers._buffers[0].data_ptr(), saver._buffers.num_bytes) == held
    sizes = sum(path.stat().st_size for path in tmp_path.glob("step-00000006/*.safetensors"))
    assert saver._buffers.num_bytes <= sizes


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_weights_of_a_gpu(tmp_path, asynchronous):
    model, optimizer = trained()
    model = model.cuda()
    for found in optimizer.state.values():
        found.update({key: value.cuda() for key, value in found.items()})
    before = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}
    saver = CheckpointSaver(tmp_path, CheckpointConfig(asynchronous=asynchronous))
    place = saver.save(state(), model, optimizer)
    with torch.no_grad():
        model.embedding.weight.fill_(7)
    saver.wait()
    assert all(buffer.is_pinned() for buffer in saver._buffers._buffers)
    found = Checkpoint(place).read()
    if asynchronous:
        assert all(torch.equal(found[name], before[name]) for name in found)
    Checkpoint(place).restore(model, optimizer)
    assert {one.device.type for one in optimizer.state[model.out.bias].values()} == {"cuda"}


def test_a_run_ends_at_the_step_after_a_failed_write(corpus, tmp_path, monkeypatch):
    """Not at its next checkpoint, nor at its end."""
    write, run = checkpoint_files.write_tensors, tmp_path / "run"

    def fail(path, tensors):
        if "step-00000006" in str(path):
            raise NO_SPACE
        return write(path, tensors)

    monkeypatch.setattr(checkpoint_files, "write_tensors", fail)
    config = driver.config()
    config = replace(config, stages=config.stages[:1])  # ten steps, saved every three
    with pytest.raises(CheckpointError, match="No space left") as caught:
        pretrain(
            config,
            corpus,
            run,
            console=Console(quiet=True),
            on_step=lambda _: time.sleep(0.05),  # the thread is quicker than a step
        )
    assert "step-00000003 is untouched" in str(caught.value)
    assert last_step(run / "metrics.jsonl") in (6, 7, 8)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-00000003"]
    monkeypatch.setattr(checkpoint_files, "write_tensors", write)
    assert pretrain(config, corpus, run, resume=True, console=Console(quiet=True)).finished


def save_on_a_full_disk(accelerator: Accelerator, folder: Path) -> None:
    """The disk of the second process is full."""
    group = checkpoint_group(2)
    model, optimizer = trained()
    save(folder, state(3), model, optimizer, keep=1, group=group)
    if accelerator.process_index == 1:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    saver = CheckpointSaver(folder, CheckpointConfig(keep=1), group=group)
    saver.save(state(6), model, optimizer)
    with pytest.raises(CheckpointError) as caught:
        saver.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert str(caught.value) == (
        f"{folder}/step-00000006: cannot be written (File too large). Free space there and "
        f"resume; {folder}/step-00000003 is untouched."
    )
    saver.save(state(9), model, optimizer)
    saver.wait()


def save_to_two_disks(accelerator: Accelerator, folder: Path) -> None:
    """Each process has a disk of its own under the same path, as far as it can tell."""
    group = checkpoint_group(2)
    own = folder / str(accelerator.process_index)
    with pytest.raises(CheckpointError, match="must be on a disk that all machines share"):
        save(own, state(3), *trained(), keep=1, group=group)
    assert list(own.iterdir()) == []


def find_damage(accelerator: Accelerator, folder: Path) -> None:
    """The hashes are checked by both processes, each for its files."""
    group = checkpoint_group(2)
    model, optimizer = trained()
    for total in (3, 6):
        save(folder, state(total), model, optimizer, keep=2, group=group)
    files = sorted((folder / "step-00000006").iterdir())
    assert len(files) == 5
    for file in files:
        whole = file.read_bytes()
        for damaged in (whole[:-3], whole[:-3] + b"!" + whole[-2:], None):
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                file.write_bytes(damaged or b"")
                if damaged is None:
                    file.unlink()
            accelerator.wait_for_everyone()
            said: list[str] = []
            found = latest_valid(folder, said.append, group)
            assert found is not None
            assert found.place.name == "step-00000003"
            (line,) = said
            assert str(file) in line
            assert ("missing" in line) == (damaged is None and file.name != "state.json")
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                file.write_bytes(whole)
    accelerator.wait_for_everyone()
    found = latest_valid(folder, pytest.fail, group)
    assert found is not None
    assert found.place.name == "step-00000006"


@pytest.mark.slow
@pytest.mark.parametrize("work", [save_on_a_full_disk, save_to_two_disks, find_damage])
def test_two_processes_have_the_same_outcome(tmp_path, work):
    folder = tmp_path / "run"
    group = Group(work, tmp_path, folder)
    assert group.end() == [0, 0], group.said(0) + group.said(1)
    if work is save_on_a_full_disk:
        assert [one.name for one in folder.iterdir()] == ["step-00000009"]
        assert Checkpoint(folder / "step-00000009").state == state(9)
