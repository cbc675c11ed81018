"""Faults of stores that were survived by asking again, counted over all processes of a command.

Loader workers and preparing processes are children of the command: the name of a common file is in
their environment, and each fault appends one line to it.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAULT_LOG = "ISOGLOT_FAULT_LOG"
"""Environment variable with the file that faults are written to, for child processes."""
_SHOWN = 4


def record_fault(reason: str) -> None:
    """Note a request that failed and is repeated."""
    log = os.environ.get(FAULT_LOG)
    if log:
        # one short write to the end of a file is not mixed with others
        with suppress(OSError), Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{' '.join(reason.split())[:200]}\n")


@contextmanager
def report_faults(note: Callable[[str], None]) -> Iterator[None]:
    """Give `note` a sentence at the end of the block, if requests failed in it."""
    if os.environ.get(FAULT_LOG):  # the command that started this process reports
        yield
        return
    log = Path(tempfile.gettempdir()) / f"isoglot-faults-{os.getpid()}-{secrets.token_hex(4)}"
    os.environ[FAULT_LOG] = str(log)
    try:
        yield
    finally:
        del os.environ[FAULT_LOG]
        if log.is_file():  # the first fault makes it
            reasons = Counter(log.read_text(encoding="utf-8").splitlines())
            log.unlink()
            note(describe_faults(reasons))


def describe_faults(reasons: Counter[str]) -> str:
    """A sentence about requests that failed and were repeated."""
    told = ", ".join(f"{reason}: {n}" for reason, n in reasons.most_common(_SHOWN))
    more = ", ..." if len(reasons) > _SHOWN else ""
    number = reasons.total()
    requests = "1 request" if number == 1 else f"{number:,} requests"
    return f"{requests} to remote files failed and had to be repeated ({told}{more})."
