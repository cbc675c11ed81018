from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


@pytest.fixture
def run(tmp_path) -> Callable[[str, Iterable[dict[str, object]]], Path]:
    """Makes a run folder whose metrics.jsonl has the given records."""

    def make(name: str, records: Iterable[dict[str, object]]) -> Path:
        folder: Path = tmp_path / name
        folder.mkdir()
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
        return folder

    return make
