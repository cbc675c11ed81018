"""knowledge.json: what a knowledge store holds, what was dropped on the way, and its fingerprint.

Written last, so a folder without one is no store. The fingerprint covers every file and the
tokenizer, and nothing that does not change the data.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import cattrs

from isoglot.corpus.disk import write_atomically
from isoglot.corpus.heldout import Split
from isoglot.corpus.knowledge.store_files import AGAIN, TableEntry
from isoglot.corpus.manifest import file_entry
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "knowledge"
"""Where a corpus keeps its knowledge."""
FILE = "knowledge.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCounts:
    """What there is in one language."""

    descriptions: int
    description_tokens: int
    sentences: dict[Split, int]
    sentence_tokens: dict[Split, int]
    mentions: dict[Split, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """All of knowledge.json."""

    format: int = FORMAT
    isoglot: str
    """The version of Isoglot that wrote the store."""
    fingerprint: str
    tokenizer: str
    """Fingerprint of the tokenizer; equal to the corpus's."""
    languages: tuple[str, ...]
    """Sorted; a language's number inside the store is its index here."""
    entities: int
    relations: int
    triples: dict[Split, int]
    counts: dict[str, LanguageCounts]
    """Language -> what there is."""
    dropped: dict[str, dict[str, int]]
    """Of what (a language's mentions, triples, ...) -> reason -> how many."""
    settings: dict[str, Any]
    files: tuple[TableEntry, ...]


def fingerprint_of(files: tuple[TableEntry, ...], tokenizer: str) -> str:
    """SHA-256 over all that determines the data."""
    parts = [tokenizer]
    parts += [f"{entry.file} {entry.sha256}" for entry in sorted(files, key=lambda e: e.file)]
    return sha256("\n".join(parts).encode()).hexdigest()


def write_about(folder: Path, about: About) -> None:
    """Writes knowledge.json; from then on the folder is a store."""
    text = json.dumps(asdict(about), ensure_ascii=False, indent=1)
    write_atomically(folder / FILE, (text + "\n").encode())


def read_about(folder: Path) -> About:
    """Reads knowledge.json.

    Raises:
        CorpusError: it is not there, or damaged.
    """
    path = folder / FILE
    if not path.is_file():
        raise CorpusError(
            f"{folder}: holds no knowledge, or linking it was interrupted: it has no {FILE}. "
            "Run isoglot knowledge link."
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        about = cattrs.Converter(forbid_extra_keys=True).structure(data, About)
    except (OSError, ValueError, cattrs.BaseValidationError) as error:
        raise CorpusError(f"{path}: is damaged ({error}). {AGAIN}") from error
    if about.format != FORMAT:
        raise CorpusError(f"{path}: has format {about.format}, wanted is {FORMAT}. {AGAIN}")
    if fingerprint_of(about.files, about.tokenizer) != about.fingerprint:
        raise CorpusError(f"{path}: is damaged: its fingerprint does not fit its files. {AGAIN}")
    return about


def verify_files(folder: Path, about: About, *, hashes: bool) -> None:
    """Compares every file with knowledge.json: that it is there, its size and maybe its hash."""
    for entry in about.files:
        path = folder / entry.file
        if not path.is_file():
            raise CorpusError(f"{path}: is missing. {AGAIN}")
        if path.stat().st_size != entry.bytes:
            raise CorpusError(f"{path}: is damaged: it must have {entry.bytes} bytes. {AGAIN}")
        if hashes and file_entry(path, entry.file).sha256 != entry.sha256:
            raise CorpusError(
                f"{path}: is damaged: its content is not the one that was written. {AGAIN}"
            )
