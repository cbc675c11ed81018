"""metrics.jsonl: one record a line.

A resumed run cuts off what lies after its checkpoint, so the file is the same as that of a run that
was never stopped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.pretrain.hooks.record import Record


class MetricsFile:
    """Appends records to a file of JSON lines."""

    def __init__(self, file: Path, *, resume_at: int = 0) -> None:
        kept = []
        if file.exists() and resume_at:
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:
                    break  # the line that was being written when the run was killed
                if record["step"] <= resume_at:
                    kept.append(line)
        scratch = file.with_suffix(".writing")
        scratch.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        scratch.replace(file)
        self._stream = file.open("a", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Append one record; it survives the process from here on."""
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
