"""Accelerate's trackers: TensorBoard by default, any other that accelerate knows by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isoglot.pretrain.hooks.record import Record


class Trackers:
    """Sends the numbers of each record to accelerate's trackers."""

    def __init__(self, accelerator: Accelerator, name: str) -> None:
        self._accelerator = accelerator
        accelerator.init_trackers(name)

    def write(self, record: Record) -> None:
        """Log the numbers of a record under their names."""
        numbers = {k: v for k, v in record.items() if k != "step" and not isinstance(v, str)}
        self._accelerator.log(numbers, step=int(record["step"]))

    def close(self) -> None:
        """Flush and close the trackers."""
        self._accelerator.end_training()
