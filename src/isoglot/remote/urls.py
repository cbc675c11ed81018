"""What is the URL of a file or folder in a store that fsspec reads, and what is a local path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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


def is_streamed(name: str) -> bool:
    """Whether an input is a URL that is read where it lies; archives are fetched and unpacked."""
    url = as_url(name)
    return url is not None and not _ARCHIVE.search(url.partition("?")[0].lower())
