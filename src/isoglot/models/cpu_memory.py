"""Memory that a CPU computation frees stays with the process, for the next tensor of its size.

glibc gives the memory of large tensors back to the operating system as soon as they are freed, and
the next tensor of a layer is page by page new memory, which the system fills with zeros: GELU over
1,024 tokens takes four times as long. `keep_freed_memory` raises glibc's two limits once for the
process, which keeps tensors of up to 32 MiB.

In a training step the logits and the gradient of the word embeddings are larger. Within
`freed_memory_kept` glibc takes the memory of every tensor from its heap and keeps all of it: with
250,002 words new memory was a quarter of a step in float32 and two fifths in bf16. Afterwards what
is free is given back.

Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""Numbers of the options in glibc's malloc.h."""
_MAX_KEPT_BYTES = 1 << 30
"""Free memory at the end of the heap that is not given back."""
_KEEP_ALL = -1
"""In the place of that number: nothing is given back."""
_MAX_HEAP_BYTES = 1 << 25
"""The largest tensor whose memory is kept, 32 MiB: glibc allows no more."""
_DEFAULT_MMAP_MAX = 65_536
"""Allocations outside the heap that glibc makes at most, unless told otherwise."""


@functools.cache
def keep_freed_memory() -> bool:
    """Keep freed memory of up to 32 MiB a tensor from now on; whether this C library can."""
    library = _glibc()
    if library is None:
        return False
    keeps_free = library.mallopt(_TRIM_THRESHOLD, _MAX_KEPT_BYTES) == 1
    return bool(library.mallopt(_MMAP_THRESHOLD, _MAX_HEAP_BYTES) == 1) and keeps_free


@contextmanager
def freed_memory_kept(device: torch.device) -> Iterator[None]:
    """Within: freed memory of tensors of any size is kept, where the device is a CPU."""
    library = _glibc() if device.type == "cpu" and keep_freed_memory() else None
    if library is None:
        yield
        return
    library.mallopt(_TRIM_THRESHOLD, _KEEP_ALL)
    library.mallopt(_MMAP_MAX, 0)
    try:
        yield
    finally:
        library.mallopt(_MMAP_MAX, _DEFAULT_MMAP_MAX)
        library.mallopt(_TRIM_THRESHOLD, _MAX_KEPT_BYTES)
        release_freed_memory()


def release_freed_memory() -> None:
    """Give memory that the process keeps and does not use back to the operating system."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


@functools.cache
def _glibc() -> Any:
    """The C library of this process, where it is glibc; else none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        library.malloc_trim.argtypes = [ctypes.c_size_t]
    except (AttributeError, OSError):
        return None
    return library if hasattr(library, "mallopt") else None
