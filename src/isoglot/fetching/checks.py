"""Is a downloaded file whole, where no hash is known? Its format says so.

Compressed files are read to their end, where they have a checksum; above 2 GiB only their first
bytes are looked at. Parquet has its mark at both ends. Plain text can be cut anywhere.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import IO, TYPE_CHECKING, cast

from isoglot.errors import FetchError
from isoglot.fetching.download import no_progress

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.fetching.download import Progress

_BLOCK = 1 << 20
_READ_BYTES = 2 << 30
_MARKS = {
    ".gz": b"\x1f\x8b",
    ".xz": b"\xfd7zXZ\0",
    ".bz2": b"BZh",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".parquet": b"PAR1",
}
_SHORT = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz"}


def check_content(path: Path, url: str, progress: Progress = no_progress) -> None:
    """Raise for a file that is not what its name says, or that is cut short.

    Raises:
        FetchError: the message names the address.
    """
    ending = _SHORT.get(path.suffix, path.suffix)
    mark = _MARKS.get(ending)
    with path.open("rb") as file:
        start = file.read(512)
        if mark is None:
            if start.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
                raise FetchError(_message(url, "it is a web page"))
            return
        if not start.startswith(mark):
            page = b"<html" in start.lower()
            raise FetchError(
                _message(url, "it is a web page" if page else f"it is not a {path.suffix} file")
            )
        if ending == ".parquet":
            file.seek(-len(mark), 2)
            if file.read() != mark:
                raise FetchError(_message(url, "it is cut short"))
            return
    if path.stat().st_size <= _READ_BYTES:
        _read(path, ending, url, progress)


def _read(path: Path, ending: str, url: str, progress: Progress) -> None:
    size = path.stat().st_size
    try:
        with path.open("rb") as raw, _opened(raw, ending) as stream:
            while stream.read(_BLOCK):
                progress(f"verify {path.name}", raw.tell(), size)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FetchError(_message(url, f"it is damaged or cut short: {error}")) from error


def _opened(raw: IO[bytes], ending: str) -> IO[bytes]:
    match ending:
        case ".gz":
            return cast("IO[bytes]", gzip.open(raw, "rb"))
        case ".xz":
            return lzma.open(raw, "rb")
        case ".bz2":
            return bz2.open(raw, "rb")
        case _:
            import pyarrow as pa

            return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))


def _message(url: str, reason: str) -> str:
    return (
        f"{url}: the download is not the expected file ({reason}). Nothing is kept: run the "
        "command again, or name a mirror (--mirror)."
    )
