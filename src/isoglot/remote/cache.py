"""Files of remote corpora on this machine's disk: each fetched once, verified, up to a limit.

The folder is the environment variable ISOGLOT_CACHE, or ~/.cache/isoglot. All processes of a
machine share it: one fetches a file while the others that need it wait. Where the files exceed the
limit (ISOGLOT_CACHE_GB), those that were opened longest ago are removed; a process that has one of
them mapped reads on until it closes it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.atomic import PARTIAL, write_errors
from isoglot.errors import FetchError
from isoglot.folders import with_home
from isoglot.remote.faults import record_fault
from isoglot.remote.stores import ask, read_range, remote_config

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = "ISOGLOT_CACHE"
"""Environment variable with the folder of the cache."""
LIMIT = "ISOGLOT_CACHE_GB"
"""Environment variable with the most GB (10^9 bytes) of shards that are kept."""
_DEFAULT_LIMIT = 50 * 10**9
_RANGE_BYTES = 16 << 20
"""Bytes of one request: what S3 and Google recommend for large reads is 8 to 16 MiB."""
SHARD_SUFFIX = ".arrow"


def cache_folder() -> Path:
    """The folder of the cache; it may not exist yet."""
    given = os.environ.get(CACHE)
    return with_home(given or "~/.cache/isoglot").absolute()


def limit_bytes() -> int:
    """The most bytes of shards that are kept: 50 GB by default, or half of what the disk has."""
    given = os.environ.get(LIMIT, "")
    try:
        if given:
            return int(float(given) * 1e9)
    except ValueError as error:
        raise FetchError(f"{LIMIT}={given!r}: is not a number of GB.") from error
    place = next(one for one in (cache_folder(), *cache_folder().parents) if one.is_dir())
    return min(_DEFAULT_LIMIT, shutil.disk_usage(place).total // 2)


def fetch_file(url: str, path: Path, *, size: int | None = None, sha256: str | None = None) -> None:
    """Fetch a file to a place, unless another process did; its size and hash are checked.

    Raises:
        FetchError: the store does not give the file, or gives another one.
    """
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(path):
        if path.is_file():
            return
        tries = remote_config().max_tries
        for attempt in range(1, tries + 1):
            found = _fetch(url, path, size)
            if sha256 is None or found == sha256:
                break
            if attempt == tries:
                raise FetchError(
                    f"{url}: its content differs from what was written (SHA-256 {found[:12]}... "
                    f"instead of {sha256[:12]}...). Copy the corpus there again."
                )
            record_fault("wrong content")
        with write_errors(path):
            _partial(path).replace(path)


def _fetch(url: str, path: Path, size: int | None) -> str:
    """Fetch the bytes of a file, range by range; gives their SHA-256."""
    if size is None:
        size = ask(url, lambda store: store.info(url)).get("size")
    digest = hashlib.sha256()
    with write_errors(path), _partial(path).open("wb") as file:
        if size is None:  # a server that does not say
            content: bytes = ask(url, lambda store: store.cat_file(url))
            digest.update(content)
            file.write(content)
            return digest.hexdigest()
        for start in range(0, size, _RANGE_BYTES):
            content = read_range(url, start, min(start + _RANGE_BYTES, size))
            digest.update(content)
            file.write(content)
    return digest.hexdigest()


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}{PARTIAL}")


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """One process of a machine at a time; others wait until it is done, or dead."""
    locks = cache_folder() / "locks"
    with write_errors(locks):
        locks.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(str(path).encode()).hexdigest()[:3]
        file = (locks / name).open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:  # a disk without locks: the file is fetched more than once
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
        yield


def limit_cache(keep: Path) -> None:
    """Remove the shards that were opened longest ago until the rest is within the limit.

    `keep` stays: it is about to be opened.
    """
    limit = limit_bytes()
    files: list[tuple[float, int, str]] = []
    for folder, _, names in os.walk(cache_folder() / "corpora"):
        for name in names:
            if name.endswith(SHARD_SUFFIX):
                with suppress(OSError):
                    about = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 (many files)
                    files.append((about.st_mtime, about.st_size, os.path.join(folder, name)))  # noqa: PTH118
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= limit:
            return
        if name != str(keep):
            Path(name).unlink(missing_ok=True)
            total -= size
