"""Which commit of the code is running, where it runs from a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import isoglot


def commit() -> str | None:
    """The checkout's commit, with `+` where files differ from it; none for an installed package."""
    root = Path(isoglot.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head or None


def _git(root: Path, *arguments: str) -> str:
    """What git says, or nothing where it is missing or refuses."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
