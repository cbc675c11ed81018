"""The pause of training for a checkpoint: written in the training process, and asynchronously.

    python -m benchmarks.checkpoint --weights 1e9 --folder /scratch/checkpoint

A transformer of about this many weights with AdamW's moments in float32 (12 bytes a weight), on the
GPU if there is one. Four ways are timed:

    before          one file each for weights and moments (safetensors), then SHA-256, then fsync
    synchronous     as `checkpoint.asynchronous: false` does it
    asynchronous    the first one, which allocates host memory, and a later one; and the time from
                    the call until the checkpoint is on disk

While the last is written, matrix products on the device show by how much training is slowed down.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from isoglot.atomic import replace_folder
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint, CheckpointConfig
from isoglot.pretraining.checkpoints.checkpoint_saver import CheckpointSaver
from isoglot.pretraining.checkpoints.checkpoint_state import TrainState
from isoglot.pretraining.checkpoints.checkpoint_tensors import optimizer_tensors, untied_tensors
from isoglot.types import Cursor

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def model_of(weights: float) -> nn.Module:
    """A fifth of the weights is an embedding, the rest transformer layers of one width."""
    width = max(64, round((weights / 12 / 24) ** 0.5) // 64 * 64)
    layers = max(1, round(0.8 * weights / (12 * width**2)))
    body = [nn.TransformerEncoderLayer(width, 8, 4 * width) for _ in range(layers)]
    rows = max(1, int((weights - sum(p.numel() for b in body for p in b.parameters())) / width))
    return nn.ModuleList([nn.Embedding(rows, width), *body]).to(DEVICE)


def with_moments(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def clock() -> float:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def before(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """As checkpoints were written before: everything in the training process."""
    with replace_folder(folder / "before", durable=True) as scratch:
        weights, _ = untied_tensors(model)
        moments, _ = optimizer_tensors(optimizer, model)
        for name, tensors in (("weights", weights), ("optimizer", moments)):
            save_file({k: v.contiguous() for k, v in tensors.items()}, scratch / name)
            with (scratch / name).open("rb") as stream:
                hashlib.file_digest(stream, "sha256")


def state(step: int) -> TrainState:
    return TrainState(
        stage=0,
        step=step,
        total_steps=step,
        tokens=0,
        cursor=Cursor(),
        corpus_fingerprint="",
        recipe_fingerprint="",
    )


def steps_in(seconds: float, *, until: Any = None) -> float:
    """Matrix products in a second, over a time or until something has ended."""
    size = 4096 if DEVICE.type == "cuda" else 512
    matrix = torch.randn(size, size, device=DEVICE)
    began, number = clock(), 0
    while (until() if until else True) and time.perf_counter() - began < seconds:
        for _ in range(5):
            matrix = torch.tanh(matrix @ matrix)
        number += 5
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
    return number / (clock() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=float, default=1e8)
    parser.add_argument("--folder", type=Path, default=Path("checkpoint-benchmark"))
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = model_of(arguments.weights)
    optimizer = with_moments(model)
    number = sum(weight.numel() for weight in model.parameters())
    found: dict[str, float | str] = {"device": str(DEVICE), "weights": number}
    try:
        began = clock()
        before(folder, model, optimizer)
        found["before, pause in s"] = clock() - began
        shutil.rmtree(folder / "before")
        saver = CheckpointSaver(folder, CheckpointConfig(keep=1, asynchronous=False))
        began = clock()
        place = saver.save(state(1), model, optimizer)
        found["synchronous, pause in s"] = clock() - began
        written = sum(file.stat().st_size for file in place.iterdir())
        found |= {"GB": written / 1e9, "files": len(list(place.iterdir()))}
        began = clock()
        Checkpoint(place)
        found["verifying in s"] = clock() - began
        saver = CheckpointSaver(folder, CheckpointConfig(keep=1), note=print)
        began = clock()
        saver.save(state(2), model, optimizer)
        found["asynchronous, first pause in s"] = clock() - began
        saver.wait()
        found["asynchronous, first on disk after s"] = clock() - began
        alone = steps_in(3.0)
        began = clock()
        place = saver.save(state(3), model, optimizer)
        found["asynchronous, pause in s"] = clock() - began
        writing = saver._writing  # noqa: SLF001
        assert writing is not None
        meanwhile = steps_in(600.0, until=writing.is_alive)
        saver.wait()
        found["asynchronous, on disk after s"] = clock() - began
        found["speed of matrix products meanwhile"] = meanwhile / alone
        assert Checkpoint(place).state == state(3)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in found.items():
        print(f"{name:40} {value:.3f}" if isinstance(value, float) else f"{name:40} {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
