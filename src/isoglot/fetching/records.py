"""What was fetched into a folder: `.fetched/NAME.json`, with the hash of every file.

The record is how a later run knows that nothing is left to do, that a file was damaged since, and
that a publisher changed a file whose hash the registry does not know.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from isoglot.atomic import write_json
from isoglot.fetching.download import no_progress, sha256_of

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.fetching.download import Progress
    from isoglot.fetching.plan import FetchPlan

FOLDER = ".fetched"
"""Folder of records and of unfinished downloads, inside an output folder."""
_VERSION = 1


@dataclass(slots=True, kw_only=True)
class FileRecord:
    """One file as it was written."""

    size: int
    sha256: str
    time_ns: int
    """Its modification time: a file that still has it and its size is not read again."""


@dataclass(slots=True, kw_only=True)
class PieceRecord:
    """One finished download."""

    sha256: str
    date: str
    files: dict[str, FileRecord]
    """Path below the output folder -> the file."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What was fetched for one name."""

    name: str
    kind: str
    title: str
    license: str
    page: str
    sides: tuple[str, ...] = ()
    format: str = ""
    options: dict[str, str] = field(default_factory=dict)
    split: str = ""
    languages: tuple[str, ...] | None = None
    """The languages that were asked for; none: all."""
    complete: bool = False
    pieces: dict[str, PieceRecord] = field(default_factory=dict)
    """Address -> the download."""
    version: int = _VERSION

    def files(self, folder: Path) -> list[Path]:
        """All files, in the order of the downloads."""
        return [folder / name for piece in self.pieces.values() for name in piece.files]


def record_path(folder: Path, name: str) -> Path:
    """The file of a name's record."""
    plain = re.sub(r"[^\w.+=@-]", "_", name)[:80]
    if plain != name:
        # names that differ in other characters only have files of their own
        plain += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return folder / FOLDER / f"{plain}.json"


def new_record(plan: FetchPlan, languages: tuple[str, ...] | None) -> Record:
    """The record of a plan of which nothing is done."""
    return Record(
        name=plan.name,
        kind=plan.kind,
        title=plan.title,
        license=plan.license,
        page=plan.page,
        sides=plan.sides,
        format=plan.format,
        options=dict(plan.options),
        split=plan.split,
        languages=languages,
    )


def read_record(path: Path) -> Record | None:
    """A record; none: there is none that can be read, and the data is fetched again."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            return None
        pieces = {
            url: PieceRecord(
                sha256=one["sha256"],
                date=one["date"],
                files={name: FileRecord(**file) for name, file in one["files"].items()},
            )
            for url, one in data.pop("pieces").items()
        }
        languages = data.pop("languages")
        return Record(
            **{**data, "sides": tuple(data["sides"])},
            pieces=pieces,
            languages=None if languages is None else tuple(languages),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Write a record."""
    write_json(path, asdict(record), indent=1)


def all_records(folder: Path) -> list[Record]:
    """The complete records of a folder."""
    found = [read_record(path) for path in sorted((folder / FOLDER).glob("*.json"))]
    return [record for record in found if record is not None and record.complete]


def record_files(folder: Path, files: list[Path], progress: Progress) -> dict[str, FileRecord]:
    """The sizes and hashes of files that have just been written."""
    found = {}
    for path in files:
        about = path.stat()
        found[path.relative_to(folder).as_posix()] = FileRecord(
            size=about.st_size, sha256=sha256_of(path, progress), time_ns=about.st_mtime_ns
        )
    return found


def is_there(
    folder: Path, piece: PieceRecord, *, read: bool, progress: Progress = no_progress
) -> bool:
    """Whether all files of a download are there as they were written.

    With `read` their content is compared, otherwise only of those that were touched since.
    """
    for name, known in piece.files.items():
        path = folder / name
        try:
            about = path.stat()
        except OSError:
            return False
        if about.st_size != known.size:
            return False
        touched = about.st_mtime_ns != known.time_ns
        if (read or touched) and sha256_of(path, progress) != known.sha256:
            return False
    return True


def today() -> str:
    """The date, for records."""
    return datetime.now(tz=UTC).date().isoformat()
