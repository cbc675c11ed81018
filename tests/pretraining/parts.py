"""What each of several processes holds of a sharded model: a program for `test_distributed.py`.

`python -m tests.pretraining.parts CORPUS OUT STRATEGY [compiled]`: every process shards a module
with a momentum encoder, takes a step, and writes OUT.RANK.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from isoglot.corpus import Corpus
from isoglot.models.sharding import (
    gathered,
    is_split,
    local_part,
    placeholder_rows,
    runs_together,
    whole_weight,
    whole_weights,
)
from isoglot.pretraining.processes.distributed import (
    DistributedConfig,
    clip_gradients,
    share_module,
)
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import training_steps
from isoglot.types import Batch
from tests.pretraining import splits

VARIANT = "momentum encoder, queue and in-batch"


def main() -> None:
    corpus, out, strategy = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    opened = Corpus.open(corpus)
    module = splits.make_module(opened, VARIANT)
    whole = {name: weight.detach().clone() for name, weight in module.named_parameters()}
    if "compiled" in sys.argv:
        module.compile(regions=True, backend="eager")
    config = DistributedConfig(strategy=strategy)  # type: ignore[arg-type]
    share_module(module, config, accelerator)
    check_whole(module, whole, keep=accelerator.is_main_process)
    batches = splits.one_step(opened, VARIANT)[accelerator.process_index :: 2]
    stage = splits.stage_of(module, module, VARIANT, config)
    (result,) = training_steps(stage, iter([batches]), accelerator)
    check_clipping(module)
    check_passes(module, batches[0])
    weights = list(module.parameters())
    states = stage.optimizer.state.values()
    found = {
        "losses": {**result.losses, "gradient norm": result.gradient_norm},
        "all": sum(size_of([weight]) for weight in whole.values()),
        "weights": size_of(weights),
        "gradients": size_of(weight.grad for weight in weights if weight.grad is not None),
        "trained": size_of(weight for weight in weights if weight.requires_grad),
        "moments": size_of(state["exp_avg"] for state in states),
        "entries": size_of([dict(module.named_buffers())["objectives.moco.queue.entries"]]),
    }
    rank = accelerator.process_index
    out.with_suffix(f".{rank}.json").write_text(json.dumps(found), encoding="utf-8")


def size_of(tensors: Iterable[Tensor]) -> int:
    """Bytes that this process holds."""
    return sum(local_part(one).numel() * one.element_size() for one in tensors)


def check_whole(module: TrainModule, whole: dict[str, Tensor], *, keep: bool) -> None:
    """Weights are parts; whole ones are what they were, and go back to parts."""
    assert all(map(is_split, module.parameters()))
    with whole_weights(module, keep=keep):
        for name, weight in module.named_parameters():
            assert is_split(weight) != keep
            assert not keep or torch.equal(weight, whole[name])
        if keep:
            head, words = module.encoder.model.lm_head.decoder, module.encoder.model
            assert head.weight is words.get_input_embeddings().weight, "tied weights stay tied"
    assert all(map(is_split, module.parameters()))
    table = module.encoder.model.get_input_embeddings().weight
    before = whole["encoder.model.lm_head.decoder.weight"]  # tied
    with torch.no_grad(), whole_weight(table) as changed:
        changed[3] = changed[5]
    with torch.no_grad(), whole_weight(table) as again:
        assert torch.equal(again[3], again[5])
        assert torch.equal(again[4], before[4])


def check_clipping(module: TrainModule) -> None:
    """The norm is that of the whole gradient, on every process."""
    gradients = {weight: weight.grad for weight in module.parameters() if weight.grad is not None}
    weights = list(gradients)
    squares = [whole_of(one).square().sum() for one in gradients.values()]
    norm = torch.stack(squares).sum().sqrt()
    assert torch.allclose(clip_gradients(weights, norm.item() / 2), norm, rtol=1e-12)
    assert torch.allclose(clip_gradients(weights, 1e9), norm / 2, rtol=1e-5)


def whole_of(part: Tensor) -> Tensor:
    with whole_weight(part) as whole:
        return whole.clone()


@torch.no_grad()
def check_passes(module: TrainModule, batch: Batch) -> None:
    """Processes take as many passes as they like within `gathered`, and no part stays whole."""
    assert runs_together(module.encoder)
    assert isinstance(module, FSDPModule)
    module(batch)
    assert all(map(is_split, module.parameters())), "a pass without gradient frees the weights"
    layers = module.encoder.model.roberta.encoder.layer
    with gathered(layers):
        assert not any(map(is_split, layers.parameters()))
        states = torch.ones(1, 3, 16, dtype=torch.float64)
        for _ in range(1 + torch.distributed.get_rank()):
            layers[0](states)
    assert all(map(is_split, module.parameters()))
    one = module.encode(placeholder_rows(batch.rows)).hidden
    assert one.isfinite().all()
    module.reshard()


if __name__ == "__main__":
    main()
