"""The files of an adaptation, all below one folder, and the records of its finished steps.

    steps = StepRecords(folder.steps)
    scores = steps.run("before", inputs, lambda: ...)

A step's record says what the step was made from, what it gave, and how long it took. It is written
when the step is done, so a step that was interrupted has none. The same inputs give the recorded
result, others run the step again. Inputs are hashes of contents, not time stamps: a copied folder
continues, too.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot import json_text
from isoglot.atomic import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_VERSION = 1
"""Raised when a step gives something else for the same inputs: all steps run again."""
_MODEL_FILES = (".json", ".safetensors", ".txt", ".model")
"""Endings of configuration, weights and tokenizer; not cards and recipes."""


@dataclass(frozen=True, slots=True)
class AdaptFolder:
    """The places of an adaptation's files."""

    path: Path

    @property
    def request(self) -> Path:
        """The settings as they were given: the same command continues, another one is refused."""
        return self.path / "adapt.yaml"

    @property
    def downloads(self) -> Path:
        """What was fetched from elsewhere."""
        return self.path / "downloads"

    @property
    def sample(self) -> Path:
        """`LANGUAGE.txt`: lines of each language, none of them held out."""
        return self.path / "sample"

    @property
    def heldout(self) -> Path:
        """`text/LANGUAGE.txt` and `pairs/A-B.tsv`: what the scores before and after are of."""
        return self.path / "heldout"

    @property
    def development(self) -> Path:
        """`A-B.tsv`: held-out pairs of the corpus, on which a layer and a pooling are chosen."""
        return self.path / "development"

    @property
    def steps(self) -> Path:
        """`STEP.json`: the inputs and the result of each finished step."""
        return self.path / "steps"

    @property
    def kept_out(self) -> Path:
        """All held-out texts, for `exclude` of prepare: lines, and both sides of pairs."""
        return self.heldout / "kept-out.jsonl"

    @property
    def linking(self) -> Path:
        """Held-out mentions and facts, as files of entity-linking and object-entailment."""
        return self.path / "linking"

    @property
    def findings(self) -> Path:
        """What was found out about the encoder, the data and the machine (JSON)."""
        return self.path / "findings.json"

    @property
    def plan(self) -> Path:
        """prepare.yaml, recipe.yaml and plan.json; edited files are used as they are."""
        return self.path / "plan"

    @property
    def encoder(self) -> Path:
        """The encoder with added words, where the vocabulary grows."""
        return self.path / "encoder"

    @property
    def corpus(self) -> Path:
        """The prepared corpus."""
        return self.path / "corpus"

    @property
    def run(self) -> Path:
        """The training run: checkpoints, metrics.jsonl, TensorBoard."""
        return self.path / "run"

    @property
    def scores(self) -> Path:
        """Scores before and after (JSON)."""
        return self.path / "scores.json"

    @property
    def report(self) -> Path:
        """The page with the scores before and after."""
        return self.path / "report.html"

    @property
    def model(self) -> Path:
        """The adapted encoder, as a transformers folder."""
        return self.path / "model"

    @property
    def sentence_model(self) -> Path:
        """The adapted encoder, as a sentence-transformers folder."""
        return self.path / "sentence-transformers"


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The records of a folder, one file for each step."""

    folder: Path

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], dict[str, Any]],
        outputs: Sequence[Path] = (),
    ) -> dict[str, Any]:
        """The result of a step (JSON): recorded, if it was made from these inputs, or made now.

        A step whose `outputs`, files or folders, are gone is not done.
        """
        result = self.result(name, inputs, outputs)
        if result is not None:
            return result
        began = time.monotonic()
        result = work()
        self.finish(name, inputs, result, seconds=time.monotonic() - began)
        return result

    def result(
        self, name: str, inputs: Mapping[str, Any], outputs: Sequence[Path] = ()
    ) -> dict[str, Any] | None:
        """The recorded result of a step; none if it is not done, or was made from other inputs."""
        record = self._read(name)
        if record is None or record.get("inputs") != _inputs_hash(inputs):
            return None
        if not all(path.exists() for path in outputs):
            return None
        result = record.get("result")
        return result if isinstance(result, dict) else None

    def finish(
        self, name: str, inputs: Mapping[str, Any], result: dict[str, Any], *, seconds: float
    ) -> None:
        """Record a step as done."""
        record = {"inputs": _inputs_hash(inputs), "seconds": seconds, "result": result}
        write_json(self._file(name), record)

    def forget(self, name: str) -> None:
        """A step is not done any more: it runs again."""
        self._file(name).unlink(missing_ok=True)

    def seconds(self, name: str) -> float | None:
        """How long a step took; none if it is not done."""
        record = self._read(name)
        found = None if record is None else record.get("seconds")
        return float(found) if isinstance(found, int | float) else None

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any] | None:
        """The record of a step; a damaged one counts as none, and the step runs again."""
        try:
            record = json_text.parse(self._file(name).read_bytes())
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None


def hash_files(files: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of files, in order of their paths."""
    digest = hashlib.sha256()
    for file in sorted(files):
        about = file.stat()
        content = _hash_file(file.resolve(), about.st_size, about.st_mtime_ns)
        digest.update(f"{file.name}\0{content}\n".encode())
    return digest.hexdigest()


@cache
def _hash_file(file: Path, _size: int, _time: int) -> str:
    """SHA-256 of a file; a file that has not changed since is not read again by this process."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_folder(folder: Path) -> str:
    """SHA-256 over all files below a folder."""
    return hash_files(path for path in folder.rglob("*") if path.is_file())


def model_files(folder: Path) -> list[Path]:
    """The files of a model folder that decide what it computes."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.suffix in _MODEL_FILES and path.name != "transplant.json"
    ]


def hash_model(folder: Path) -> str:
    """SHA-256 over the files of a model folder that decide what it computes."""
    return hash_files(model_files(folder))


def hash_sentences(folder: Path) -> str:
    """As `hash_model`, with the modules of a sentence-transformers folder."""
    return hash_files(
        path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")
    )


def _inputs_hash(inputs: Mapping[str, Any]) -> str:
    text = json.dumps({"version": _VERSION, **inputs}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
