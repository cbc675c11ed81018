"""Loading by torch.distributed.checkpoint (DCP), from the safetensors files of a checkpoint.

DCP plans which process reads which part of which file, whatever the processes that wrote it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future
from typing_extensions import override

from isoglot.pretraining.checkpoints.checkpoint_files import key_in_file
from isoglot.pretraining.checkpoints.checkpoint_storage import without_single_process_warning

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor
    from torch.distributed import ProcessGroup
    from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner

    from isoglot.pretraining.checkpoints.checkpoint_files import SavedTensor


class SafetensorsReader(StorageReader):
    """Reads parts of tensors from the files of a checkpoint."""

    def __init__(self, place: Path, tensors: Mapping[str, SavedTensor]) -> None:
        self._place, self._tensors = place, tensors

    @override
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        pass

    @override
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return Metadata(
            {
                name: TensorStorageMetadata(
                    TensorProperties(dtype=found.dtype),
                    torch.Size(found.shape),
                    [
                        ChunkStorageMetadata(torch.Size(part.offsets), torch.Size(part.sizes))
                        for part in found.parts
                    ],
                )
                for name, found in self._tensors.items()
            }
        )

    @override
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        pass

    @override
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    @override
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    @override
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        wanted = defaultdict(list)
        for item in plan.items:
            found = self._tensors[item.storage_index.fqn]
            offsets = tuple(item.storage_index.offset or ())
            part = next(one for one in found.parts if one.offsets == offsets)
            wanted[part.file].append((item, part, found))
        for file, items in wanted.items():
            with safe_open(self._place / file, framework="pt") as opened:
                for item, part, found in items:
                    name = item.storage_index.fqn.partition("/")[2]
                    key = key_in_file(name, found.shape, part.offsets, part.sizes)
                    whole = opened.get_tensor(key)
                    if (whole.dtype, tuple(whole.shape)) != (found.dtype, part.sizes):
                        raise ValueError(f"{file} has {key} with another shape or type")
                    target = planner.resolve_tensor(item).detach()
                    for dim, (start, length) in enumerate(
                        zip(item.storage_offsets, item.lengths, strict=True)
                    ):
                        whole = whole.narrow(dim, start, length)
                    target.copy_(whole)
                    planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    @classmethod
    @override
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


def load_into(
    tensors: Mapping[str, Tensor], reader: SafetensorsReader, group: ProcessGroup | None
) -> None:
    """Read tensors in place: of a sharded one, the part of this process."""
    with without_single_process_warning():
        load(
            dict(tensors),
            storage_reader=reader,
            planner=DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False),
            process_group=group,
            no_dist=group is None,
        )
