"""A finished corpus copied to a store: all files, the manifest last, so that it is whole or not.

`isoglot prepare --out s3://bucket/corpus` prepares in the cache of remote files, in a folder of the
URL's own, then copies. A command that was interrupted goes on: files that were copied before are
not sent again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from isoglot.atomic import write_errors, write_text
from isoglot.errors import FetchError
from isoglot.locks import LOCK
from isoglot.remote.cache import cache_folder
from isoglot.remote.stores import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsspec import AbstractFileSystem

_MANIFEST = "manifest.json"
_WRITABLE = ("s3", "gs", "gcs", "hf", "az", "abfs", "memory")


def outgoing_folder(url: str) -> Path:
    """The local folder in which a corpus for a URL is prepared.

    Raises:
        FetchError: nothing can be written there.
    """
    scheme = url.partition("://")[0]
    if scheme not in _WRITABLE:
        raise FetchError(
            f"{url}: a corpus cannot be written to {scheme}://. Prepare it in a local folder, and "
            "copy the folder to the server."
        )
    key = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
    return cache_folder() / "outgoing" / f"{url.rstrip('/').rpartition('/')[2][:60]}-{key}"


def upload_corpus(folder: Path, url: str, progress: Callable[[int, int], None]) -> None:
    """Copy a finished corpus; `progress` is called with bytes done and all bytes.

    Raises:
        FetchError: the store refuses, or does not answer any more.
    """
    url = url.rstrip("/")
    address = f"{url}/{_MANIFEST}"
    manifest = (folder / _MANIFEST).read_bytes()
    there = ask(address, lambda store: _content(store, address))
    if there == manifest:
        return
    if there is not None:  # from here on it is no corpus, until the new manifest is there
        ask(address, lambda store: store.rm_file(address))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    files.remove(folder / _MANIFEST)
    sent = _Sent(folder, f"{hashlib.sha256(manifest).hexdigest()} {url}")
    done, total = 0, sum(path.stat().st_size for path in files) + len(manifest)
    for path in files:
        name = path.relative_to(folder).as_posix()
        if name not in sent.names:
            _put(path, f"{url}/{name}")
            sent.add(name)
        done += path.stat().st_size
        progress(done, total)
    _put(folder / _MANIFEST, address)
    progress(total, total)


def _content(store: AbstractFileSystem, address: str) -> bytes | None:
    """A small file; none: there is none."""
    return store.cat_file(address) if store.exists(address) else None


def _put(path: Path, address: str) -> None:
    ask(address, lambda store: store.put_file(str(path), address))


class _Sent:
    """The files of a corpus that were copied, kept beside its folder for an interrupted command."""

    def __init__(self, folder: Path, copy: str) -> None:
        """`copy` names the manifest and the URL: files of another copy are sent again."""
        self._path = folder.with_name(f"{folder.name}.sent")
        lines = self._path.read_text("utf-8").splitlines() if self._path.is_file() else []
        self.names = set(lines[1:]) if lines[:1] == [copy] else set()
        if not self.names:
            write_text(self._path, f"{copy}\n")

    def add(self, name: str) -> None:
        """Note a file that was copied."""
        with write_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
