"""One file from the web: resumed, tried again, verified, whole or not there.

Bytes go to `FILE.partial`; `FILE.partial.json` has the validator of what it is a part of (ETag or
date). A download that was cut continues with a range request that names the validator, so that
parts of two versions are never joined; a server without ranges or validators is asked for the whole
file again. The size and the hash, where they are known, are checked before the file gets its name.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.atomic import PARTIAL, write_errors
from isoglot.errors import FetchError, WriteError
from isoglot.fetching.http import FetchConfig, TransientError, request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import urllib3

    Progress = Callable[[str, int, int | None], None]
    """Called with what is downloaded, bytes done and all bytes (none: unknown)."""

_BLOCK = 1 << 20
_MAX_BACKOFF_SECONDS = 60.0
_SPARE = 64 << 20
"""Bytes of a disk that are left free."""
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A file on the web, with what is known about it."""

    url: str
    size: int | None = None
    """Its exact size in bytes."""
    sha256: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of requests, such as a token."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


def download(
    remote: Remote,
    path: Path,
    config: FetchConfig,
    progress: Progress = no_progress,
    stage: str | None = None,
) -> str:
    """Download a file to a path; gives its SHA-256.

    Raises:
        FetchError: the server does not give the file, or gives another one.
        WriteError: the disk is full or cannot be written.
    """
    stage = stage or path.name
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _download(remote, path, config, progress, stage)
    except WrongFileError as fault:
        if not fault.resumed:
            raise
    # a server that ignores validators may have sent parts of two files
    return _download(remote, path, config, progress, stage)


def remote_size(remote: Remote, config: FetchConfig) -> int | None:
    """The size that the server gives, without downloading; none: it does not say."""
    try:
        with request(remote.url, config, dict(remote.headers), method="HEAD") as response:
            size = response.headers.get("Content-Length")
    except TransientError:
        return None
    return int(size) if size and size.isdigit() else None


class WrongFileError(FetchError):
    """The downloaded file is not the one that was expected."""

    def __init__(self, message: str, *, resumed: bool) -> None:
        super().__init__(message)
        self.resumed = resumed


def _download(
    remote: Remote, path: Path, config: FetchConfig, progress: Progress, stage: str
) -> str:
    part = _Partial(path)
    resumed, most, tries = part.size > 0, part.size, 0
    while True:
        try:
            _attempt(remote, part, config, progress, stage)
            break
        except TransientError as fault:
            if part.size > most:
                most, tries = part.size, 0
            tries += 1
            resumed = resumed or part.size > 0
            if tries >= config.max_tries:
                kept = f" {part.size:,} bytes are kept." if part.size else ""
                raise FetchError(
                    f"{remote.url}: cannot be downloaded ({fault}; asked {tries} times).{kept} Run "
                    "the command again later to continue, or name a mirror (--mirror)."
                ) from fault
            backoff = min(config.backoff_seconds * 2 ** (tries - 1), _MAX_BACKOFF_SECONDS)
            time.sleep(backoff if fault.wait_seconds is None else fault.wait_seconds)
    return _finish(remote, part, path, resumed=resumed, progress=progress)


def _attempt(
    remote: Remote, part: _Partial, config: FetchConfig, progress: Progress, stage: str
) -> None:
    """One request for what is missing; returns when nothing is."""
    validator = part.validator(remote.url)
    if part.size and validator is None and remote.sha256 is None:
        part.discard()
    headers = dict(remote.headers)
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if validator:
            headers["If-Range"] = validator
    with request(remote.url, config, headers) as response:
        if response.status == 416:
            _, _, total = _content_range(response)
            if total == part.size:
                return
            part.discard()
            raise TransientError("the server has another file now")
        total = _begin(remote, part, response)
        _require_space(remote.url, part, total)
        part.remember(remote.url, response)
        progress(stage, part.size, total)
        with write_errors(part.path), part.path.open("ab") as file:
            done = part.size
            # what came before a cut is given, too: `read` would lose it
            while block := response.read1(_BLOCK):
                done += len(block)
                if remote.size is not None and done > remote.size:
                    break
                file.write(block)
                progress(stage, done, total)
    if total is not None and done < total:
        raise TransientError(f"the connection broke after {done:,} of {total:,} bytes")


def _begin(remote: Remote, part: _Partial, response: urllib3.BaseHTTPResponse) -> int | None:
    """Check where the body of an answer belongs; gives the size of the whole file."""
    kind = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if kind in {"text/html", "application/xhtml+xml"} and not remote.url.endswith(
        (".html", ".htm")
    ):
        raise FetchError(
            f"{remote.url}: the server sends a web page instead of the file; a log-in, a consent "
            "form or a proxy may be in between. Open the address in a browser, or name a mirror "
            "(--mirror)."
        )
    length = response.headers.get("Content-Length")
    left = int(length) if length and length.isdigit() else None
    if response.status == 206:
        start, _, total = _content_range(response)
        if start != part.size:
            part.discard()
            raise TransientError("the server sends another part than it was asked for")
        if total is None and left is not None:
            total = part.size + left
    else:
        part.discard()
        total = left
    if remote.size is not None and total is not None and total != remote.size:
        raise FetchError(
            f"{remote.url}: has {total:,} bytes there, and {remote.size:,} are expected. The file "
            "has changed or the server is wrong: look at the publisher's page, or name a mirror "
            "(--mirror)."
        )
    return remote.size if total is None else total


def _content_range(
    response: urllib3.BaseHTTPResponse,
) -> tuple[int | None, int | None, int | None]:
    match = _RANGE.fullmatch((response.headers.get("Content-Range") or "").strip())
    if match is None:
        return None, None, None
    start, end, total = (int(one) if one and one != "*" else None for one in match.groups())
    return start, end, total


def _require_space(url: str, part: _Partial, total: int | None) -> None:
    need_space(part.path.parent, 0 if total is None else total - part.size, url)


def need_space(folder: Path, size: int, what: str) -> None:
    """Refuse to write so many bytes into a folder whose disk has no room for them."""
    free = shutil.disk_usage(folder).free
    if size + _SPARE > free:
        raise WriteError(
            f"{what}: {size / 1e9:,.2f} GB are to be written to {folder}, where {free / 1e9:,.2f} "
            "GB are free. Free disk space there, or choose another folder (--out)."
        )


def _finish(
    remote: Remote, part: _Partial, path: Path, *, resumed: bool, progress: Progress
) -> str:
    size = part.size
    if remote.size is not None and size != remote.size:
        part.discard()
        raise WrongFileError(
            f"{remote.url}: {size:,} bytes or more came, and {remote.size:,} are expected. Nothing "
            "is kept: run the command again, or name a mirror (--mirror).",
            resumed=resumed,
        )
    found = sha256_of(part.path, progress)
    if remote.sha256 is not None and found != remote.sha256:
        part.discard()
        raise WrongFileError(
            f"{remote.url}: the file is not the expected one (SHA-256 {found[:12]}... instead of "
            f"{remote.sha256[:12]}...). Nothing is kept: run the command again; if that does not "
            "help, the publisher has changed the file: look at its page, or name a mirror "
            "(--mirror).",
            resumed=resumed,
        )
    with write_errors(path):
        part.path.replace(path)
    part.discard()
    return found


def sha256_of(path: Path, progress: Progress = no_progress) -> str:
    """The SHA-256 of a file."""
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if size > 64 * _BLOCK:
                progress(f"verify {path.name.removesuffix(PARTIAL)}", done, size)
    return digest.hexdigest()


class _Partial:
    """The part of a file that is here, and what it is a part of."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + PARTIAL)
        self._about = path.with_name(path.name + PARTIAL + ".json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def validator(self, url: str) -> str | None:
        """The ETag or date of the file that this is a part of; none: not known."""
        try:
            about = json.loads(self._about.read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(about, dict) or about.get("url") != url:
            self.discard()
            return None
        found = about.get("validator")
        return found if isinstance(found, str) else None

    def remember(self, url: str, response: urllib3.BaseHTTPResponse) -> None:
        etag, date = response.headers.get("ETag"), response.headers.get("Last-Modified")
        # a weak ETag does not promise equal bytes
        strong = etag if etag and not etag.startswith("W/") else None
        # a file that a crash cut is no JSON, and the download then begins anew
        with write_errors(self._about):
            self._about.write_text(json.dumps({"url": url, "validator": strong or date}))

    def discard(self) -> None:
        for path in (self.path, self._about):
            with suppress(OSError):
                path.unlink()
