"""An evaluation of one model folder: open it, score it, say what was scored."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING, Any

from isoglot.corpus.readers import Record
from isoglot.corpus.readers.pairs import PairsReader
from isoglot.errors import CorpusError, ModelError
from isoglot.evaluate.retrieval import retrieval
from isoglot.models import Encoder, ModelConfig, language_embeddings
from isoglot.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def model_folder(path: Path) -> Path:
    """The Hugging Face folder meant by a path: itself, or the model of a run."""
    for folder in (path, path / "model"):
        if (folder / "config.json").is_file():
            return folder
    raise ModelError(
        f"{path} holds no model (no config.json there or in {path / 'model'}). "
        f"Give a Hugging Face folder, or a run that has finished."
    )


def evaluate_retrieval(
    folder: Path,
    files: Sequence[Path],
    *,
    most: int,
    center: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Results:
    """Retrieval scores of a model folder on files of translations named like en-de.tsv."""
    pairs = {}
    for file in files:
        name = file.name.split(".")[0]
        if name.count("-") != 1:
            raise CorpusError(f"{file}: name the file after its two languages, like en-de.tsv.")
        pairs[name] = _read_pairs(file, most)
        if not pairs[name][0]:
            raise CorpusError(f"{file} has no pair of sentences (two columns, a tab between).")
    encoder, tokenizer = open_for_scoring(folder)
    return Results(
        model=str(folder),
        fingerprint=fingerprint(folder),
        scores=tuple(retrieval(encoder, tokenizer, pairs, center=center, progress=progress)),
    )


def _read_pairs(file: Path, most: int) -> tuple[list[str], list[str]]:
    records = (found for found in PairsReader().read([file]) if isinstance(found, Record))
    texts = [record.texts for record in islice(records, most)]
    return [first for first, _ in texts], [second for _, second in texts]


def open_for_scoring(folder: Path) -> tuple[Encoder, Any]:
    """An encoder and its tokenizer, on the device at hand."""
    import torch
    from transformers import AutoTokenizer

    # every batch of sentences has a shape of its own, and FlexAttention compiles for each
    encoder = Encoder.open(str(folder), ModelConfig(start=str(folder), attention="sdpa"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return encoder.to(device).eval(), AutoTokenizer.from_pretrained(folder)


def scored_without(folder: Path) -> str | None:
    """A sentence on what a model was trained with and is scored without, if there is anything."""
    if language_embeddings.used_on(folder) != "all":
        return None
    return (
        f"{folder} was trained with language embeddings on all tokens. The plain model is scored, "
        "without them: the scores are those of the model as transformers opens it."
    )


def fingerprint(folder: Path) -> str:
    """SHA-256 over the weights of a model folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
