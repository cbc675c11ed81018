"""The files of a checkpoint: which part of which tensor is in which safetensors file, and hashes.

One process writes `weights.safetensors` and `optimizer.safetensors`. Several write
`weights-00001-of-00004.safetensors` and so on, each process its own; a file is at most 4 GiB, so
that the hashes of a large model are computed by several threads. state.json lists every tensor with
its parts. A tensor is cut along one dimension at most.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch

from isoglot import atomic
from isoglot.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

WEIGHTS, OPTIMIZER = "weights", "optimizer"
MAX_FILE_BYTES = 4 * 2**30
"""Bytes of tensors in a file; a single larger part has a file of its own."""
_THREADS = 4
"""Files that a process writes, or hashes, at a time."""
_BLOCK_BYTES = 16 * 2**20
_NAME = re.compile(rf"({WEIGHTS}|{OPTIMIZER})(-\d{{5,}}-of-\d{{5,}})?\.safetensors")
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a type of numbers in a safetensors file."""
    if dtype not in _DTYPE_NAMES:
        raise CheckpointError(f"A checkpoint cannot hold tensors of {dtype}: use another type.")
    return _DTYPE_NAMES[dtype]


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a tensor, in one file."""

    file: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor of a checkpoint and the files that it is in."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def num_bytes(self) -> int:
        """Its size on disk."""
        return math.prod(self.shape) * self.dtype.itemsize

    def content(self) -> dict[str, Any]:
        """What state.json has of it."""
        return {
            "dtype": dtype_name(self.dtype),
            "shape": list(self.shape),
            "parts": [[part.file, list(part.offsets), list(part.sizes)] for part in self.parts],
        }

    @classmethod
    def of_content(cls, content: Any) -> SavedTensor:
        """From state.json.

        Raises:
            KeyError, TypeError, ValueError: it describes no tensor, or its parts do not fill it.
        """
        shape = _counts(content["shape"])
        parts = tuple(
            Part(file, _counts(offsets), _counts(sizes))
            for file, offsets, sizes in content["parts"]
        )
        for part in parts:
            if not isinstance(part.file, str) or not _NAME.fullmatch(part.file):
                raise ValueError(f"{part.file!r} is not the name of a checkpoint's file")
        found = cls(_DTYPES[content["dtype"]], shape, parts)
        found.check()
        return found

    def check(self) -> None:
        """A `ValueError` unless the parts fill the tensor, one after the other."""
        dims = {len(one) for part in self.parts for one in (part.offsets, part.sizes)}
        if dims - {len(self.shape)}:
            raise ValueError("a part has other dimensions than its tensor")
        cut = {
            dim
            for part in self.parts
            for dim, size in enumerate(part.sizes)
            if size != self.shape[dim]
        }
        if len(cut) > 1:
            raise ValueError("a tensor is cut along several dimensions")
        if not cut:
            filled = len(self.parts) == (0 if 0 in self.shape else 1)
            if not filled or any(any(part.offsets) for part in self.parts):
                raise ValueError("the parts of a tensor do not fill it")
            return
        (dim,) = cut
        at = 0
        for part in sorted(self.parts, key=lambda part: part.offsets[dim]):
            others = part.offsets[:dim] + part.offsets[dim + 1 :]
            if part.offsets[dim] != at or part.sizes[dim] == 0 or any(others):
                raise ValueError("the parts of a tensor do not fill it")
            at += part.sizes[dim]
        if at != self.shape[dim]:
            raise ValueError("the parts of a tensor do not fill it")


def _counts(values: Any) -> tuple[int, ...]:
    found = tuple(values)
    if not all(type(one) is int and 0 <= one < 2**62 for one in found):
        raise TypeError("a size is not a number from 0 on")
    return found


def key_in_file(
    name: str, shape: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]
) -> str:
    """The name of a part in its file: the tensor's, with the range of a cut one."""
    if tuple(sizes) == tuple(shape):
        return name
    ranges = (f"{start}:{start + size}" for start, size in zip(offsets, sizes, strict=True))
    return f"{name}[{','.join(ranges)}]"


def numbered(kind: str, counts: Sequence[int]) -> list[list[str]]:
    """Names of the files of a kind, for processes that write so many of them each."""
    total, names, number = sum(counts), [], 0
    for count in counts:
        own = []
        for _ in range(count):
            number += 1
            infix = f"-{number:05d}-of-{total:05d}" if total > 1 else ""
            own.append(f"{kind}{infix}.safetensors")
        names.append(own)
    return names


def write_tensors(file: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file and flush it to disk; gives its SHA-256.

    Tensors are written as they come, so those with the largest elements come first.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": dtype_name(tensor.dtype),
            "shape": list(tensor.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with file.open("wb") as out:
        for block in chain((len(text).to_bytes(8, "little"), text), _blocks(tensors)):
            out.write(block)
            digest.update(block)
    atomic.sync(file)
    return digest.hexdigest()


def _blocks(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    for tensor in tensors.values():
        if tensor.numel():
            flat = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
            data = memoryview(flat.numpy())  # type: ignore[arg-type]
            for start in range(0, len(data), _BLOCK_BYTES):
                yield data[start : start + _BLOCK_BYTES]


def write_all(folder: Path, files: Mapping[str, Mapping[str, Tensor]]) -> dict[str, str]:
    """Write files, a few at a time; gives their SHA-256."""
    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = {
            name: pool.submit(write_tensors, folder / name, found) for name, found in files.items()
        }
        return {name: job.result() for name, job in jobs.items()}


def check_hashes(folder: Path, expected: Mapping[str, str]) -> None:
    """Hash files, a few at a time.

    Raises:
        CheckpointError: one is missing, or has another hash.
    """
    for name in expected:
        if not _NAME.fullmatch(name):
            raise CheckpointError(f"{folder}: {name!r} is not the name of a checkpoint's file.")
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing.")
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(_sha256, (folder / name for name in expected))
        for (name, digest), own in zip(expected.items(), found, strict=True):
            if own != digest:
                raise CheckpointError(
                    f"{folder / name} is damaged: its SHA-256 is not the recorded one."
                )


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from error
