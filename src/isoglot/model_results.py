"""The results file of a model folder: find the model, read its existing scores, add new ones.

Shared by evaluation, fine-tuning and translation. A file belongs to one model, identified by the
SHA-256 of its weights; scores of another model are refused.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.averaging import averages
from isoglot.errors import ModelError
from isoglot.results import Results, ResultsError, Score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isoglot.tasks.base import Task


def model_folder(path: Path) -> Path:
    """The Hugging Face folder of a path: the path itself, or the model of a run."""
    for folder in (path, path / "model"):
        if (folder / "config.json").is_file():
            return folder
    raise ModelError(
        f"{path} holds no model (no config.json there or in {path / 'model'}). "
        f"Give a Hugging Face folder, or a run that has finished (docs/resume.md says how to get a "
        f"model out of one that was stopped)."
    )


def existing_results(
    folder: Path,
    out: Path | None,
    *,
    tasks: Sequence[str] = (),
    note: Callable[[str], None] | None = None,
) -> Results:
    """The results of a model folder in `out`, or empty ones if there is no such file.

    `note` is called with a sentence if the file has scores of some of the tasks; scores of another
    model are refused.
    """
    weights = fingerprint(folder)
    if out is None or not out.is_file():
        return Results(model=str(folder), fingerprint=weights, scores=())
    results = Results.read(out)
    if results.fingerprint != weights:
        raise ResultsError(
            f"{out} has scores of another model, {results.model}, or of earlier weights of this "
            "one. Name another file with --out."
        )
    known = {score.task for score in results.scores} & set(tasks)
    if known and note is not None:
        note(
            f"{out} has scores of {', '.join(sorted(known))}. Existing scores are not computed "
            "again, even if the data has changed: name another file with --out for that."
        )
    return results


def add_scores(results: Results, scores: Iterable[Score], out: Path | None) -> Results:
    """Results with new scores, which get the commit of the code; written to `out` if given."""
    commit = current_commit()
    results = results.merged([replace(score, commit=commit) for score in scores])
    if out is not None:
        results.write(out, averages=averages(results.scores))
    return results


def is_scored(
    scores: Iterable[Score], task: Task[Any, Any], language: str, scenario: str | None
) -> bool:
    """Whether a task's current version has scores in a language and scenario."""
    wanted = task.name, task.version, language, scenario
    return any((s.task, s.version, s.language, s.scenario) == wanted for s in scores)


def fingerprint(folder: Path) -> str:
    """SHA-256 over the weights of a model folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def current_commit() -> str | None:
    """The Git commit of the running code, with `+` if files differ; none for a package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head or None


def _git(root: Path, *arguments: str) -> str:
    """The output of git; empty if git is missing or fails."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
