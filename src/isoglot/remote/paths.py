"""A remote file as a path: readers of files take it as they take local ones.

Files are read as streams of ranges of 8 MiB. A server that gives no ranges, or does not say how
large a file is, is asked for the whole file, which is then a temporary copy.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from typing_extensions import override

from isoglot.errors import FetchError
from isoglot.remote.stores import ask, filesystem, read_range, remote_config
from isoglot.remote.urls import as_url

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 8 << 20
"""Bytes of one request of a file that is read from its beginning to its end."""
_KEPT_INFO = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInfo:
    """What a store says of a file."""

    size: int | None
    """Bytes; none: it does not say."""
    version: str
    """What changes with the content: its ETag or the time of its last change; empty: not known."""
    sha256: str | None = None
    """The hash of the content, where the store has it (files of the Hugging Face hub)."""
    has_ranges: bool = True
    """Whether parts of the file can be asked for."""


@lru_cache(_KEPT_INFO)
def remote_info(url: str) -> RemoteInfo:
    """What the store says of a file; asked once in a process.

    Raises:
        FetchError: there is no such file, or it may not be read.
    """
    found: dict[str, Any] = ask(url, lambda store: store.info(url))
    if found.get("type") == "directory":
        raise FetchError(f"{url}: is a folder. Name the files in it, for example {url}/*.txt.")
    names = ("ETag", "etag", "md5Hash", "blob_id", "Last-Modified", "LastModified", "updated")
    version = next((str(found[name]) for name in names if found.get(name)), "")
    lfs = found.get("lfs")
    size = found.get("size")
    return RemoteInfo(
        size=None if size is None else int(size),
        version=version or str(found.get("created") or found.get("mtime") or ""),
        sha256=getattr(lfs, "sha256", None) or (lfs or {}).get("sha256") if lfs else None,
        has_ranges=size is not None and found.get("partial") is not False,
    )


class RemotePath(type(Path())):  # type: ignore[misc]
    """A file or folder of a store, by its URL."""

    def __new__(cls, *parts: str | Path) -> RemotePath:
        """A URL is kept as it is written: a store's names may hold two slashes in a row."""
        text = "/".join(map(str, parts))
        made = cast("RemotePath", super().__new__(cls, text))
        made._url = as_url(text)  # noqa: SLF001
        return made

    @override
    def __str__(self) -> str:
        kept: str | None = getattr(self, "_url", None)
        if kept is not None:
            return kept
        text = super().__str__()
        return as_url(text) or text

    @override
    def __fspath__(self) -> str:
        return str(self)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath, (str(self),)

    @property
    @override
    def suffix(self) -> str:
        """The ending of the file's name, without what follows a question mark."""
        return Path(re.split(r"[?#]", self.name)[0]).suffix

    @override
    def absolute(self) -> RemotePath:
        return self

    @override
    def resolve(self, strict: bool = False) -> RemotePath:
        return self

    @override
    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Its size, and a time that is another one for each version of the file."""
        info = remote_info(str(self))
        version = int.from_bytes(hashlib.sha256(info.version.encode()).digest()[:6], "big")
        found = (stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, info.size or 0, 0, 0, 0)
        return os.stat_result(found, {"st_mtime_ns": version})

    @override
    def exists(self) -> bool:
        return bool(ask(str(self), lambda store: store.exists(str(self))))

    @override
    def is_file(self) -> bool:
        return bool(ask(str(self), lambda store: store.isfile(str(self))))

    @override
    def is_dir(self) -> bool:
        return bool(ask(str(self), lambda store: store.isdir(str(self))))

    @override
    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """All files below a folder, whatever the pattern."""
        url = str(self)
        names = ask(url, lambda store: [store.unstrip_protocol(n) for n in store.find(url)])
        return map(RemotePath, names)

    @override
    def open(self, mode: str = "rb", *_: Any, **__: Any) -> IO[bytes]:
        """The bytes of the file, as a stream that can be read anywhere."""
        assert mode == "rb", "remote files are only read"
        return open_remote(str(self))

    @override
    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    @override
    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def sha256(self) -> str:
        """The hash of its content where the store has it, else of its URL, size and version.

        Where the store tells no version either, the file is read.
        """
        url = str(self)
        info = remote_info(url)
        if info.sha256 is not None:
            return info.sha256
        if info.version:
            told = f"{url}\n{info.size}\n{info.version}"
            return hashlib.sha256(told.encode()).hexdigest()
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def open_remote(url: str) -> IO[bytes]:
    """The bytes of a remote file; what is asked for is read by ranges, and ahead."""
    from fsspec.spec import AbstractBufferedFile

    info = remote_info(url)
    if not info.has_ranges:
        return _copy(url)

    class Ranges(AbstractBufferedFile):
        """fsspec's buffered file, whose requests are repeated after faults."""

        @override
        def _fetch_range(self, start: int, end: int) -> bytes:
            return read_range(url, start, end)

    opened = Ranges(
        filesystem(url),
        url,
        mode="rb",
        block_size=BLOCK_BYTES,
        cache_type="readahead",
        size=info.size,
    )
    return cast("IO[bytes]", opened)


def _copy(url: str) -> IO[bytes]:
    """A temporary copy of a file whose server gives no ranges."""
    from isoglot.fetching.download import Remote, download

    with tempfile.TemporaryDirectory(prefix="isoglot-") as folder:
        file = Path(folder) / "copy"
        download(Remote(url=url), file, remote_config())
        return file.open("rb")


def find_remote(pattern: str) -> list[RemotePath]:
    """The files that a URL with `*`, `?` or `[...]` matches, sorted; without them, itself."""
    import glob

    # a question mark of an address of the web begins its query
    is_web = pattern.startswith(("http://", "https://"))
    if not glob.has_magic(pattern.partition("?")[0] if is_web else pattern):
        return [RemotePath(pattern)]
    found: dict[str, Any] = ask(pattern, lambda store: store.glob(pattern, detail=True))
    store = filesystem(pattern)
    files = [name for name, about in found.items() if about.get("type") != "directory"]
    if not files:
        raise FetchError(
            f"{pattern}: no file matches, or the store gives no list of its files. Name the files."
        )
    return sorted(RemotePath(store.unstrip_protocol(name)) for name in files)
