"""A profile of the kernels of a step, taken in the steps after the timed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import DeviceType

from benchmarks.race import machine

if TYPE_CHECKING:
    from pathlib import Path


class KernelProfile:
    """Profiles two steps and writes a table: milliseconds a step, calls a step, kernel name."""

    STEPS = 2
    TOP = 60

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is profiled."""
        self._path = path
        self._left = self.STEPS if path else 0
        self._profiler: Any = None

    def step_ended(self) -> bool:
        """Call after the last timed step and after each later one; gives whether to go on."""
        machine.synchronize()
        if self._path is None:
            return False
        if self._profiler is None:
            self._profiler = torch.profiler.profile(acc_events=True)
            self._profiler.start()
            return True
        self._left -= 1
        if not self._left:
            self._profiler.stop()
            self._path.write_text(self._table(), encoding="utf-8")
        return self._left > 0

    def _table(self) -> str:
        """The kernel time of a step, and the kernels (on a CPU: operations) by time."""
        wanted = DeviceType.CUDA if torch.cuda.is_available() else DeviceType.CPU
        spent: dict[str, list[float]] = {}
        for event in self._profiler.events():
            if event.device_type != wanted or getattr(event, "is_user_annotation", False):
                continue
            microseconds = event.self_device_time_total or event.self_cpu_time_total
            spent.setdefault(event.name, []).append(microseconds / 1000)
        busy = sum(map(sum, spent.values())) / self.STEPS
        lines = [f"kernels: {busy:.1f} ms a step"]
        for name, times in sorted(spent.items(), key=lambda named: -sum(named[1]))[: self.TOP]:
            milliseconds, calls = sum(times) / self.STEPS, len(times) / self.STEPS
            lines.append(f"{milliseconds:8.2f} ms {calls:7.1f} x  {name[:110]}")
        return "\n".join(lines) + "\n"
