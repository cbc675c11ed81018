"""Host memory of two processes that build and shard a model.

    python -m benchmarks.sharded_build [--size large] [--vocabulary 250002] [--everywhere]

Both are gloo processes on this machine's CPUs. Printed for each, in GiB beyond what it used
before: the peak while the model is built, and the peak until it is sharded. The CPU stands for the
device here, so the second one includes what a GPU would hold: its parts, and the embeddings, which
are whole for a moment. With `--everywhere` every process builds the weights, as for a module that
cannot be built on the meta device.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from tests.pretraining.groups import Group

from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.mlm import MLM
from isoglot.pretraining.memory import peak_memory, start_peak, used_memory
from isoglot.pretraining.processes.distributed import DistributedConfig, share_module
from isoglot.pretraining.processes.initial_weights import build_on_first_process
from isoglot.pretraining.train_module import TrainModule

if TYPE_CHECKING:
    from accelerate import Accelerator

_SECONDS = 540.0


def measure(accelerator: Accelerator, size: str, vocabulary: int, everywhere: bool) -> None:
    """On each process: build, shard, print two peaks."""
    torch.set_num_threads(1)
    settings = ModelConfig(size=cast("Any", size))

    def build() -> TrainModule:
        corpus = cast("Any", None)  # masked language modeling reads nothing of it
        return TrainModule(Encoder.from_scratch(settings, vocabulary, 1), {"mlm": MLM()}, corpus)

    torch.manual_seed(0)
    start_peak(accelerator.device)
    before = used_memory(accelerator.device)
    module = build() if everywhere else build_on_first_process(build, accelerator)[0]
    built = peak_memory(accelerator.device) - before
    share_module(module, DistributedConfig(strategy="fsdp"), accelerator)
    sharded = peak_memory(accelerator.device) - before
    held = used_memory(accelerator.device) - before
    numbers = " | ".join(f"{one / 2**30:.2f}" for one in (built, sharded, held))
    print(f"| {accelerator.process_index} | {numbers} |", flush=True)


def main() -> None:
    """Start both processes and print what they measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--size", default="large", help="model.size")
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--everywhere", action="store_true", help="every process builds weights")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = (given.size, given.vocabulary, given.everywhere)
        group = Group(measure, Path(folder), *settings, timeout_seconds=_SECONDS)
        if group.end(_SECONDS) != [0, 0]:
            raise SystemExit(group.said(0) + group.said(1))
        print("| process | peak of building, GiB | peak of building and sharding | held after |")
        print("|--:|--:|--:|--:|")
        print(group.said(0) + group.said(1), end="")


if __name__ == "__main__":
    main()
