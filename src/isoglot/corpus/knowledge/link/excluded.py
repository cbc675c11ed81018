"""Sentences of evaluation files, which linking leaves out of pages and of descriptions.

As `exclude` of `isoglot prepare` does: texts are compared by the hashes of their letters and digits
(`isoglot.corpus.decontamination`). A description is the beginning of a page, so the sentences of
its page say what is to be cut out of it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from isoglot.corpus.decontamination import (
    ContaminationIndex,
    EvaluationFileTask,
    hash_evaluation_file,
    write_index,
)
from isoglot.corpus.reading.sources import expand_patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.corpus.knowledge.link.config import LinkConfig
    from isoglot.types import BoolArray

_BATCH = 8192


def excluded_files(config: LinkConfig) -> tuple[Path, ...]:
    """The evaluation files that the settings name, each once."""
    if not config.exclude:
        return ()
    return tuple(dict.fromkeys(expand_patterns(config.exclude, Path(), "exclude")))


def hash_excluded(files: Sequence[Path]) -> list[str]:
    """SHA-256 of the evaluation files, sorted: which they are, not where."""
    found = []
    for file in files:
        with file.open("rb") as stream:
            found.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return sorted(set(found))


def index_excluded(files: Sequence[Path], min_bytes: int, folder: Path) -> Path | None:
    """The index of all texts of evaluation files, below a folder; none: there are no files."""
    if not files:
        return None
    index = folder / "index.npy"
    if not index.is_file():
        tasks = [
            EvaluationFileTask(
                file=file, sha256="", min_bytes=min_bytes, output=folder / f"{number}.npy"
            )
            for number, file in enumerate(files)
        ]
        for task in tasks:
            hash_evaluation_file(task)
        write_index(tasks, index)
    return index


def are_excluded(texts: Sequence[str], index: Path | None) -> BoolArray:
    """Which texts are in an evaluation file."""
    found = ContaminationIndex(index).find([(text,) for text in texts])
    return np.fromiter(map(bool, found), np.bool_, len(texts))


def excluded_sentences(shard: Path, index: Path | None) -> dict[int, list[str]]:
    """Page -> its sentences that are in an evaluation file, of a shard of sentences."""
    known = ContaminationIndex(index)
    found: dict[int, list[str]] = {}
    for batch in pq.ParquetFile(shard).iter_batches(_BATCH, columns=["page", "text"]):
        texts = batch["text"].to_pylist()
        for row, files in enumerate(known.find([(text,) for text in texts])):
            if files:
                found.setdefault(batch["page"][row].as_py(), []).append(texts[row])
    return found


def leave_out(text: str, sentences: Sequence[str]) -> str:
    """A text without some of its sentences, of which the last one may be cut off."""
    for sentence in sorted(sentences, key=len, reverse=True):
        text = text.replace(sentence, "")
        if sentence.startswith(text):  # a first sentence that is longer than an opening
            text = ""
    return re.sub(r" {2,}", " ", text).strip()
