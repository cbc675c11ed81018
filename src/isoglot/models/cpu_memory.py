"""Memory that a CPU computation frees stays with the process, for the next tensor of its size.

glibc gives the memory of large tensors back to the operating system as soon as they are freed, and
the next tensor of a layer is page by page new memory, which the system fills with zeros: GELU over
1,024 tokens takes four times as long. `keep_freed_memory` raises glibc's two limits once for the
process; other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the options in glibc's malloc.h."""
_MAX_KEPT_BYTES = 1 << 30
"""Free memory at the end of the heap that is not given back."""
_MAX_HEAP_BYTES = 1 << 25
"""The largest tensor whose memory is kept, 32 MiB: glibc allows no more."""


@functools.cache
def keep_freed_memory() -> bool:
    """Keep freed memory from now on; whether this C library can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    keeps_free = mallopt(_TRIM_THRESHOLD, _MAX_KEPT_BYTES) == 1
    return bool(mallopt(_MMAP_THRESHOLD, _MAX_HEAP_BYTES) == 1) and keeps_free
