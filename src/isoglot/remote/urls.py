"""What is the URL of a file or folder in a store that fsspec reads, and what is a local path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isoglot.errors import FetchError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMES = ("s3", "gs", "gcs", "hf", "https", "http", "az", "abfs", "memory")
"""Stores that are read; `memory` is fsspec's own, of one process."""
_URL = re.compile(rf"({'|'.join(SCHEMES)}):/{{1,2}}(?=[^/])")
_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tar\.(gz|xz|bz2|zst))$")


def as_url(name: str | Path) -> str | None:
    """The URL that a name is; none: it is something else, such as a local path.

    A URL that was a `Path` on its way has lost a slash (`s3:/bucket`), which is put back.
    """
    text = str(name)
    match = _URL.match(text)
    return None if match is None else f"{match[1]}://{text[match.end() :]}"


def is_streamed(url: str) -> bool:
    """Whether the files of a URL are read where they lie; archives of the web are fetched.

    Raises:
        FetchError: it is an archive in another store.
    """
    if not _ARCHIVE.search(url.partition("?")[0].lower()):
        return True
    if url.startswith(("http://", "https://")):
        return False
    raise FetchError(f"{url}: is an archive. Unpack it there, and name the files in it.")
