"""Fetching one name into a folder: plan, license, downloads, unpacking, record.

Interrupted anywhere, the same call goes on: finished downloads are recorded one by one, and an
unfinished one continues where it stopped. Two calls for one name take turns.
"""

from __future__ import annotations

import hashlib
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.argument_names import public
from isoglot.errors import FetchError
from isoglot.fetching.checks import check_content
from isoglot.fetching.download import WrongFileError, download, need_space, no_progress
from isoglot.fetching.http import FetchConfig
from isoglot.fetching.plan import FetchPlan, Piece, make_plan
from isoglot.fetching.records import (
    FOLDER,
    PieceRecord,
    Record,
    is_there,
    new_record,
    read_record,
    record_files,
    record_path,
    today,
    write_record,
)
from isoglot.fetching.registry import parse_name
from isoglot.fetching.unpack import unpack
from isoglot.locks import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isoglot.fetching.download import Progress


_RECORD_SECONDS = 1.0
"""Seconds between two writings of a record: there may be hundreds of small files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A name whose files are here."""

    record: Record
    files: tuple[Path, ...]
    was_there: bool
    """Whether nothing had to be downloaded."""


def print_license(plan: FetchPlan) -> None:
    """Write what is about to be downloaded, and its license, to standard error."""
    sys.stderr.write(f"{describe(plan)}\n")


def describe(plan: FetchPlan) -> str:
    """Title, size, license and page of a plan, in a line."""
    page = f" {plan.page}" if plan.page and plan.page not in plan.license else ""
    return f"{plan.name}: {plan.title}; {size_of(plan)}. License: {plan.license}.{page}"


def size_of(plan: FetchPlan) -> str:
    """The size of a plan in words."""
    return human_size(plan.size) if plan.size is not None else plan.about or "size not known"


def human_size(size: int) -> str:
    """A size in its unit: `75.7 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size} bytes"


@public
def fetch(
    name: str,
    folder: str | Path,
    *,
    language: str | None = None,
    languages: tuple[str, ...] | None = None,
    config: FetchConfig | None = None,
    progress: Progress = no_progress,
    announce: Callable[[FetchPlan], None] = print_license,
    verify: bool = True,
    update: bool = False,
) -> Fetched:
    """Download, verify and unpack what a name stands for, unless it is there.

        files = isoglot.fetch("opus:Tatoeba/en-sw", "raw").files

    Args:
        name: a name of the registry (docs/fetch.md), a hub dataset or an address.
        folder: where files go; records are in its folder `.fetched`.
        language: completes a name without a language.
        languages: codes of the languages to fetch, where a data set has several; none: all.
        config: how servers are asked.
        progress: called with what is done, bytes done and all bytes (none: not known).
        announce: called with the plan before the first byte is downloaded; by default it prints
            the license.
        verify: read files that are there to compare their hashes; otherwise only touched ones.
        update: ask servers again, and accept files that changed since they were recorded.

    Returns:
        The files, and the record with license and hashes.

    Raises:
        FetchError: it cannot be fetched; the message names the address and the remedy.
    """
    config, folder = config or FetchConfig(), Path(folder)
    path = record_path(folder, _full_name(name, language))
    with _no_empty_folders(path.parent, folder), lock_file(path, wait=True):
        before = None if update else read_record(path)
        if before is not None and before.complete and before.languages == languages:
            checked = [
                is_there(folder, piece, read=verify, progress=progress)
                for piece in before.pieces.values()
            ]
            if checked and all(checked):
                return Fetched(record=before, files=tuple(before.files(folder)), was_there=True)
        plan = make_plan(name, config, language=language, languages=languages)
        announce(plan)
        record = new_record(plan, languages)
        if before is not None:
            record.pieces = before.pieces
        _fetch_pieces(plan, record, folder, path, config, progress, verify=verify)
        record.pieces = {piece.remote.url: record.pieces[piece.remote.url] for piece in plan.pieces}
        record.complete = True
        write_record(path, record)
    return Fetched(record=record, files=tuple(record.files(folder)), was_there=False)


@contextmanager
def _no_empty_folders(*folders: Path) -> Iterator[None]:
    """After an error, removes folders that nothing was written to."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for folder in folders:
                folder.rmdir()
        raise


def _full_name(name: str, language: str | None) -> str:
    """The name with its language: what the record is called."""
    if "://" in name or name.startswith("hf:"):
        return name if language is None else f"{name} {language}"
    return parse_name(name, language).name


def _fetch_pieces(
    plan: FetchPlan,
    record: Record,
    folder: Path,
    path: Path,
    config: FetchConfig,
    progress: Progress,
    *,
    verify: bool,
) -> None:
    """Fetch the pieces of a plan that are not there; the record grows with each."""
    missing = []
    for piece in plan.pieces:
        known = record.pieces.get(piece.remote.url)
        if known is None or not is_there(folder, known, read=verify, progress=progress):
            missing.append(piece)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    need_space(folder, sum(piece.remote.size or 0 for piece in missing), plan.name)
    all_progress = _overall(plan.name, missing, progress) if len(missing) > 1 else progress
    downloads = path.with_suffix(".downloads")
    written = time.monotonic()
    try:
        for piece in missing:
            url = piece.remote.url
            known = record.pieces.get(url)
            fetched = _fetch_piece(piece, known, folder, downloads, config, all_progress)
            record.pieces[url] = fetched
            if time.monotonic() - written > _RECORD_SECONDS:
                write_record(path, record)
                written = time.monotonic()
    except BaseException:
        if record.pieces:
            write_record(path, record)
        raise


def _overall(name: str, pieces: list[Piece], progress: Progress) -> Progress:
    """Progress over several files as one: in bytes if all sizes are known, else in files."""
    sizes = [piece.remote.size for piece in pieces]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    done = dict[str, int]()

    def report(stage: str, so_far: int, size: int | None) -> None:
        if stage.startswith(("verify ", "unpack ")):
            return
        done[stage] = so_far
        if total is not None:
            progress(name, sum(done.values()), total)
        elif size is not None and so_far == size:
            progress(f"{name}, files", len(done), len(pieces))

    return report


def _fetch_piece(
    piece: Piece,
    known: PieceRecord | None,
    folder: Path,
    downloads: Path,
    config: FetchConfig,
    progress: Progress,
) -> PieceRecord:
    """Download one file, check it, and put it or its members where they belong."""
    remote = piece.remote
    if known is not None and remote.sha256 is None:
        remote = replace(remote, sha256=known.sha256)
    work = downloads / hashlib.sha256(remote.url.encode()).hexdigest()[:16]
    label = piece.place.rpartition("/")[2]
    path = work / label if not piece.keep else work / _archive_name(remote.url, label)
    try:
        sha256 = download(remote, path, config, progress, stage=label)
    except WrongFileError as error:
        if known is None or piece.remote.sha256 is not None:
            raise
        raise FetchError(
            f"{remote.url}: the publisher has changed the file since it was first fetched on "
            f"{known.date}, so that results would not be comparable. Add --update to take the new "
            "one."
        ) from error
    try:
        if piece.keep:
            verified = piece.remote.sha256 is not None
            files = unpack(
                path, folder, piece.keep, url=remote.url, verified=verified, progress=progress
            )
        else:
            if piece.remote.sha256 is None:
                check_content(path, remote.url, progress)
            files = [folder / piece.place]
            files[0].parent.mkdir(parents=True, exist_ok=True)
            path.replace(files[0])
    finally:
        path.unlink(missing_ok=True)
    with suppress(OSError):
        work.rmdir()
        downloads.rmdir()
    found = record_files(folder, files, progress)
    return PieceRecord(sha256=sha256, date=today(), files=found)


def _archive_name(url: str, label: str) -> str:
    """The name of an archive, with the ending that says how to open it."""
    last = url.partition("?")[0].rpartition("/")[2]
    return last if "." in last else label
