"""A JSON file that is there whole or not at all, also where its writer is stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_json(file: Path, content: Any, *, indent: int | None = None) -> None:
    """Write JSON beside the place where it belongs, then move it there; folders are made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".writing")
    scratch.write_text(json.dumps(content, indent=indent, ensure_ascii=False), encoding="utf-8")
    scratch.replace(file)
