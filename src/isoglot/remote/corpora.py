"""A prepared corpus by URL: a local folder, to which shards are fetched when they are read.

    CACHE/corpora/<hash of the URL and the manifest>/
        remote.json       the URL
        manifest.json     what the corpus holds, with sizes and hashes of all files
        tokenizer/ ...    fetched when the corpus is opened
        text/sw/*.arrow   fetched when first read, removed when the cache is full

The folder is used as any corpus; only `Shard`, where a file is missing, asks `fetch_missing` for
it. Another manifest at the same URL is another folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from isoglot.atomic import write_bytes, write_json
from isoglot.errors import CorpusError, FetchError
from isoglot.remote.cache import cache_folder, fetch_file, limit_cache
from isoglot.remote.stores import ask

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from isoglot.corpus.storage.shards import FileEntry

_MARKER = "remote.json"
_MANIFEST = "manifest.json"
_MANIFESTS = {"": _MANIFEST, "knowledge/": "knowledge.json"}
"""Folder in a corpus -> its file with the sizes and hashes of others."""


class _Expected(NamedTuple):
    bytes: int
    sha256: str


def cached_folder(url: str) -> Path:
    """The local folder of a corpus by URL, with its manifest.

    Raises:
        CorpusError: there is no corpus, or it cannot be read.
    """
    url = url.rstrip("/")
    address = f"{url}/{_MANIFEST}"
    try:
        content: bytes = ask(address, lambda store: store.cat_file(address))
    except FetchError as error:
        if "there is no such file" not in str(error):
            raise CorpusError(str(error)) from error
        raise CorpusError(
            f"{url}: is not a prepared corpus: it has no {_MANIFEST}. `isoglot prepare FILE --out "
            "FOLDER` makes one; copy the whole folder there."
        ) from error
    key = hashlib.sha256(url.encode() + b"\n" + content).hexdigest()[:16]
    folder = cache_folder() / "corpora" / f"{url.rpartition('/')[2][:60]}-{key}"
    if not (folder / _MARKER).is_file():
        write_bytes(folder / _MANIFEST, content)
        write_json(folder / _MARKER, {"url": url})
    return folder


def url_of(folder: Path) -> str | None:
    """The URL of a cached corpus; none: the folder is a corpus of its own."""
    try:
        return str(json.loads((folder / _MARKER).read_text(encoding="utf-8"))["url"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{folder / _MARKER}: is damaged ({error}). Remove the folder {folder}."
        ) from error


def fetch_files(folder: Path, files: Iterable[FileEntry]) -> None:
    """Fetch files of a cached corpus that are not there yet."""
    for entry in files:
        path = folder / entry.file
        if not path.is_file():
            url = f"{url_of(folder)}/{entry.file}"
            fetch_file(url, path, size=entry.bytes, sha256=entry.sha256)


def fetch_manifest(folder: Path, name: str) -> bool:
    """Fetch a manifest of a part of a corpus, such as its knowledge; false: there is none."""
    url = url_of(folder)
    if url is None or (folder / name).is_file():
        return (folder / name).is_file()
    address = f"{url}/{name}"
    if not ask(address, lambda store: store.exists(address)):
        return False
    fetch_file(address, folder / name)
    _expected.cache_clear()
    return True


def fetch_missing(path: Path) -> bool:
    """Fetch a file that is missing, if it is of a cached corpus; false: it is not.

    Raises:
        FetchError: it cannot be fetched.
    """
    folder = cached_corpus_of(path.parent)
    if folder is None:
        return False
    file = path.relative_to(folder).as_posix()
    expected = _expected(folder).get(file)
    fetch_file(
        f"{url_of(folder)}/{file}",
        path,
        size=expected.bytes if expected else None,
        sha256=expected.sha256 if expected else None,
    )
    limit_cache(path)
    return True


@lru_cache(1 << 16)
def cached_corpus_of(folder: Path) -> Path | None:
    """The cached corpus that a folder is of; none: it is of a corpus of its own."""
    return next((one for one in (folder, *folder.parents) if (one / _MARKER).is_file()), None)


def note_opened(path: Path) -> None:
    """Note that a file of a cached corpus is opened now: the oldest are removed first."""
    if cached_corpus_of(path.parent) is not None:
        with suppress(OSError):
            os.utime(path)


@lru_cache(16)
def _expected(folder: Path) -> dict[str, _Expected]:
    """Path in the corpus -> size and hash, of all files that manifests name."""
    found: dict[str, _Expected] = {}
    for inside, name in _MANIFESTS.items():
        path = folder / inside / name
        if path.is_file():
            _collect(json.loads(path.read_bytes()), inside, found)
    return found


def _collect(part: object, prefix: str, found: dict[str, _Expected]) -> None:
    """The entries of files anywhere in a manifest."""
    if isinstance(part, dict):
        if {"file", "bytes", "sha256"} <= part.keys():
            found[f"{prefix}{part['file']}"] = _Expected(part["bytes"], part["sha256"])
        for one in part.values():
            _collect(one, prefix, found)
    elif isinstance(part, list):
        for one in part:
            _collect(one, prefix, found)
