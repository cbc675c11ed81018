"""Saving by torch.distributed.checkpoint (DCP), to safetensors files.

DCP plans which process writes which part of which tensor: of a sharded tensor its own part, of one
that all processes hold an equal share. `SafetensorsWriter` only copies the parts to
host memory while DCP saves (or not even that); the files are written after it, possibly by a
thread while training goes on (`checkpoint_saver.py`). DCP's own metadata file is a pickle; here,
state.json has the same in JSON.

Names of tensors begin with their kind: `weights/...`, `optimizer/...`.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.distributed.tensor import DTensor
from torch.futures import Future
from typing_extensions import override

from isoglot.pretraining.checkpoints.checkpoint_files import (
    MAX_FILE_BYTES,
    OPTIMIZER,
    WEIGHTS,
    Part,
    SavedTensor,
    key_in_file,
    numbered,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor
    from torch.distributed import ProcessGroup
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.planner import SavePlan, SavePlanner

SHARE_BYTES = 64 * 2**20
"""A tensor that all processes hold is divided among them in parts of about this size."""


class HostBuffers:
    """Host memory that parts are copied to; pinned for those of a GPU, and used again."""

    def __init__(self) -> None:
        self._buffers: list[Tensor] = []

    @property
    def num_bytes(self) -> int:
        """Memory that is held."""
        return sum(buffer.numel() for buffer in self._buffers)

    def get(self, number: int, size: int, *, pinned: bool) -> Tensor:
        """The n-th buffer, with this many bytes or more."""
        while len(self._buffers) <= number:
            self._buffers.append(torch.empty(0, dtype=torch.uint8))
        if self._buffers[number].numel() < size:
            self._buffers[number] = torch.empty(0, dtype=torch.uint8)  # freed first
            self._buffers[number] = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        return self._buffers[number]


class SharingPlanner(DefaultSavePlanner):
    """DCP's planner; tensors that all processes hold are cut, so that each writes a part of them.

    DCP assigns every part to the process that has least to write.
    """

    def __init__(self, num_processes: int) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self._num_processes = num_processes

    @override
    def create_local_plan(self) -> SavePlan:
        plan = super().create_local_plan()
        if self._num_processes > 1:
            items = [part for item in plan.items for part in _split_rows(item)]
            plan = self.plan = replace(plan, items=items)
        return plan

    @override
    def resolve_data(self, write_item: WriteItem) -> Tensor:
        tensor = self.state_dict[write_item.index.fqn]
        if isinstance(tensor, DTensor):
            return tensor.to_local()
        assert write_item.tensor_data is not None
        part = write_item.tensor_data.chunk
        found: Tensor = tensor.narrow(0, part.offsets[0], part.sizes[0]) if tensor.ndim else tensor
        return found


def _split_rows(item: WriteItem) -> list[WriteItem]:
    """The parts of a tensor that all processes hold, cut along its first dimension."""
    assert item.tensor_data is not None
    shape, size = item.tensor_data.size, item.tensor_storage_size() or 0
    if item.type != WriteItemType.TENSOR or size <= SHARE_BYTES or not shape:
        return [item]
    rows = max(1, SHARE_BYTES * shape[0] // size)
    parts = []
    for start in range(0, shape[0], rows):
        offsets = torch.Size((start, *[0] * (len(shape) - 1)))
        sizes = torch.Size((min(rows, shape[0] - start), *shape[1:]))
        data = replace(item.tensor_data, chunk=ChunkStorageMetadata(offsets, sizes))
        index = MetadataIndex(item.index.fqn, offsets)
        parts.append(WriteItem(index=index, type=WriteItemType.SHARD, tensor_data=data))
    return parts


class SafetensorsWriter(StorageWriter):
    """Assigns parts to files; with buffers, it copies this process's parts into them."""

    def __init__(
        self,
        buffers: HostBuffers | None = None,
        *,
        fits: Callable[[int], bool] = lambda _: True,
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare to save.

        Args:
            buffers: where parts are copied to; none: they are not copied.
            fits: is there memory for a copy of so many bytes?
            begin: called on the coordinator before anything else; its errors reach all processes.
        """
        self._buffers, self._fits, self._begin = buffers, fits, begin
        self.is_copied = False
        """Does a later change of the tensors leave what is written alone?"""
        self.files: dict[str, dict[str, Tensor]] = {}
        """This process's files: names and tensors of each."""
        self.tensors: dict[str, SavedTensor] = {}
        """All tensors, on the coordinator."""

    @override
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        pass

    @override
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if is_coordinator:
            self._begin()

    @override
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    @override
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each item of each plan a file: its position is that in `storage_data`."""
        files: list[list[str]] = [[""] * len(plan.items) for plan in plans]
        for kind in (WEIGHTS, OPTIMIZER):
            assigned = [_assign_files(plan.items, kind) for plan in plans]
            names = numbered(kind, [1 + max(one.values(), default=-1) for one in assigned])
            for own, found, name in zip(files, assigned, names, strict=True):
                for position, number in found.items():
                    own[position] = name[number]
        return [replace(plan, storage_data=own) for plan, own in zip(plans, files, strict=True)]

    @override
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        files: dict[str, list[tuple[str, Tensor]]] = defaultdict(list)
        results = []
        for item, file in zip(plan.items, plan.storage_data, strict=True):
            if not file:
                continue  # an empty part
            assert item.tensor_data is not None
            tensor = planner.resolve_data(item)
            assert isinstance(tensor, torch.Tensor)
            part, name = item.tensor_data.chunk, item.index.fqn.partition("/")[2]
            key = key_in_file(name, item.tensor_data.size, part.offsets, part.sizes)
            files[file].append((key, tensor.detach()))
            results.append(WriteResult(item.index, _bytes(item), (file, tuple(part.sizes))))
        # the largest elements first, so that every tensor of a file is aligned
        self.files = {
            file: dict(sorted(found, key=lambda one: -one[1].dtype.itemsize))
            for file, found in files.items()
        }
        if self._buffers is not None and self._fits(sum(one.size_in_bytes for one in results)):
            self.files = _copy_to_host(self.files, self._buffers)
            self.is_copied = True
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    @override
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        parts: dict[str, list[Part]] = defaultdict(list)
        for own in results:
            for one in own:
                file, sizes = one.storage_data
                parts[one.index.fqn].append(Part(file, tuple(one.index.offset or ()), sizes))
        for name, found in metadata.state_dict_metadata.items():
            assert isinstance(found, TensorStorageMetadata)
            saved = SavedTensor(found.properties.dtype, tuple(found.size), tuple(parts[name]))
            saved.check()
            self.tensors[name] = saved

    @classmethod
    @override
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


def _bytes(item: WriteItem) -> int:
    assert item.tensor_data is not None
    return item.tensor_data.chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize


def _assign_files(items: Sequence[WriteItem], kind: str) -> dict[int, int]:
    """Position of an item -> the number of its file, among those of a process and a kind."""
    found: dict[int, int] = {}
    number, filled = 0, 0
    for position, item in enumerate(items):
        size = _bytes(item)
        if item.index.fqn.partition("/")[0] != kind or not size:
            continue
        if filled and filled + size > MAX_FILE_BYTES:
            number, filled = number + 1, 0
        found[position] = number
        filled += size
    return found


def _copy_to_host(
    files: Mapping[str, Mapping[str, Tensor]], buffers: HostBuffers
) -> dict[str, dict[str, Tensor]]:
    """Copies of tensors in host memory; the device has reached this point afterwards."""
    copies: dict[str, dict[str, Tensor]] = {}
    devices = {one.device for found in files.values() for one in found.values() if one.is_cuda}
    for number, (file, tensors) in enumerate(files.items()):
        size = sum(one.numel() * one.dtype.itemsize for one in tensors.values())
        buffer = buffers.get(number, size, pinned=bool(devices))
        copies[file], at = {}, 0
        for name, tensor in tensors.items():
            end = at + tensor.numel() * tensor.dtype.itemsize
            place = buffer[at:end].view(tensor.dtype).view(tensor.shape)
            copies[file][name] = place.copy_(tensor, non_blocking=True)
            at = end
    for device in devices:
        torch.cuda.synchronize(device)
    return copies


def plan_and_copy(
    tensors: Mapping[str, Tensor], writer: SafetensorsWriter, group: ProcessGroup | None
) -> None:
    """Let DCP plan who writes what; the writer then has this process's files."""
    processes = 1 if group is None else group.size()
    with without_single_process_warning():
        save(
            dict(tensors),
            storage_writer=writer,
            planner=SharingPlanner(processes),
            process_group=group,
            no_dist=group is None,
        )


@contextmanager
def without_single_process_warning() -> Iterator[None]:
    """Without DCP's warning of a single process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def first_failure(error: CheckpointException) -> BaseException:
    """What went wrong on the first process where something did."""
    failures: dict[int, Any] = error.failures
    found: BaseException = min(failures.items())[1][0]
    if isinstance(found, KeyboardInterrupt):
        raise found
    return found


def gather_objects(value: Any, group: ProcessGroup | None) -> list[Any]:
    """The values of all processes, in their order."""
    if group is None:
        return [value]
    found: list[Any] = [None] * group.size()
    torch.distributed.all_gather_object(found, value, group)
    return found
