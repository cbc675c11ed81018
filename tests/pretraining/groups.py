"""Small groups of gloo processes that run a function of a test."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import time
import warnings
from datetime import timedelta
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from torch.distributed import TCPStore  # type: ignore[attr-defined]

from isoglot.errors import IsoglotError
from tests.pretraining.launching import FORKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Group:
    """Forked processes that call `target(accelerator, *arguments)`, as torchrun's would."""

    def __init__(
        self,
        target: Callable[..., object],
        folder: Path,
        *arguments: object,
        processes: int = 2,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.outputs = [folder / f"rank-{rank}.txt" for rank in range(processes)]
        environment = {
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
        }
        self.ranks = [
            FORKING.Process(
                target=_as_rank,
                args=(target, arguments, environment, rank, output, timeout_seconds),
            )
            for rank, output in enumerate(self.outputs)
        ]
        for process in self.ranks:
            process.start()

    def end(self, timeout: float = 60.0) -> list[int | None]:
        """Wait for all; their exit codes (none: still running, and killed now)."""
        deadline = time.monotonic() + timeout
        for process in self.ranks:
            process.join(max(0.0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self.ranks]
        for process in self.ranks:
            if process.is_alive():
                process.kill()
                process.join()
        return codes

    def said(self, rank: int) -> str:
        return self.outputs[rank].read_text(encoding="utf-8") if self.outputs[rank].exists() else ""


def _as_rank(
    target: Callable[..., object],
    arguments: tuple[Any, ...],
    environment: dict[str, str],
    rank: int,
    output: Path,
    timeout_seconds: float,
) -> None:
    os.setsid()
    os.environ.update(environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    warnings.simplefilter("ignore")
    multiprocessing.set_start_method(None, force=True)
    resource_tracker._resource_tracker._fd = None  # type: ignore[attr-defined]
    from accelerate import Accelerator, InitProcessGroupKwargs

    limit = InitProcessGroupKwargs(timeout=timedelta(seconds=timeout_seconds))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[limit])
    try:
        target(accelerator, *arguments)
    except IsoglotError as error:
        os.write(2, f"isoglot: {error}\n".encode())
        os._exit(1)
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
