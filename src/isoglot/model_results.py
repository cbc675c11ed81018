"""The results file of a model folder: read its existing scores, add new ones.

Shared by evaluation, fine-tuning and translation. A file belongs to one model, identified by the
SHA-256 of its weights; scores of another model are refused.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.averaging import averages
from isoglot.locks import lock_file
from isoglot.results import Results, ResultsError, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.tasks.base import Task

_HASH_LENGTH = 16


def existing_results(folder: Path, out: Path | None) -> Results:
    """The results of a model folder in `out`, or empty ones if there is no such file.

    Scores of another model are refused.
    """
    weights = fingerprint(folder)
    if out is None or not out.is_file():
        return Results(model=str(folder), fingerprint=weights, scores=())
    results = Results.read(out)
    _check_model(results, weights, out)
    return results


def hash_examples(*sets: Iterable[Any]) -> str:
    """A hash of examples, which changes with the data; the order counts."""
    digest = hashlib.sha256()
    for examples in sets:
        for example in examples:
            digest.update(_example_text(example).encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()[:_HASH_LENGTH]


def _example_text(example: Any) -> str:
    if not is_dataclass(example):
        return repr(example)
    values = (getattr(example, field.name) for field in fields(example))
    return repr([sorted(v) if isinstance(v, frozenset) else v for v in values])


def reuse_note(out: Path, task: str, reused: Sequence[str], changed: Sequence[str]) -> str:
    """A sentence about the cells of a task that are taken from a file, and those that are not."""
    notes = []
    if reused:
        notes.append(
            f"{task} in {', '.join(reused)} is taken from {out}: weights and data are the same."
        )
    if changed:
        notes.append(
            f"{task} in {', '.join(changed)} is scored again: the scores in {out} are of other "
            "data, or of an earlier version, which did not keep the hash of its data."
        )
    return " ".join(notes)


def _check_model(results: Results, weights: str, file: Path) -> None:
    if results.fingerprint != weights:
        raise ResultsError(
            f"{file} has scores of another model, {results.model}, or of earlier weights of this "
            "one. Name another file with --out."
        )


def add_scores(results: Results, scores: Iterable[Score], out: Path | None) -> Results:
    """Results with new scores, which get the commit of the code; written to `out` if given.

    Scores that another command has added to the file since it was read are kept.
    """
    commit = current_commit()
    added = [replace(score, commit=commit) for score in scores]
    if out is None:
        return results.merged(added)
    with lock_file(out, wait=True):
        if out.is_file():
            written = Results.read(out)
            _check_model(written, results.fingerprint, out)
            results = results.merged(written.scores)
        results = results.merged(added)
        results.write(out, averages=averages(results.scores))
    return results


def scored_data(
    scores: Iterable[Score], task: Task[Any, Any], language: str, scenario: str | None
) -> set[str | None]:
    """The hashes of the data that a task's current version was scored on; empty: not scored."""
    wanted = task.name, task.version, language, scenario
    return {s.data for s in scores if (s.task, s.version, s.language, s.scenario) == wanted}


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
