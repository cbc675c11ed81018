"""Opens a raw file, plain or packed, as a stream of bytes.

The suffix says how a file is packed: .gz, .bz2, .xz, .zst, or anything else for plain. A file that
is missing or damaged is an error that names it, and the byte up to which it could be read.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

from typing_extensions import override

from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = 1 << 20


def read_blocks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, a million at a time."""
    require(path)
    done = 0
    try:
        with _open(path) as stream:
            while block := stream.read(_BLOCK):
                yield block
                done += len(block)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise CorpusError(_damaged(path, done, error)) from error
    except OSError as error:
        # bz2 has no error class of its own: a damaged stream is an OSError without a number
        if error.errno is None:
            raise CorpusError(_damaged(path, done, error)) from error
        raise CorpusError(f"{path}: cannot be read ({error.strerror}).") from error


def require(path: Path) -> None:
    """Raises a `CorpusError` unless the path is a file, naming its nearest neighbour."""
    if path.is_file():
        return
    if path.is_dir():
        raise CorpusError(f"{path}: is a folder. Name the files in it, for example {path}/*.txt.")
    if not path.parent.is_dir():
        raise CorpusError(f"{path}: there is no such file, nor its folder {path.parent}.")
    neighbours = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    hint = nearest(path.name, neighbours) if neighbours else "that folder holds no files."
    raise CorpusError(f"{path}: there is no such file; {hint}")


def _damaged(path: Path, done: int, error: Exception) -> str:
    return (
        f"{path}: is damaged or was cut short after byte {done:,} of what it unpacks to ({error}). "
        "Fetch or make the file again, then give the command again."
    )


def _open(path: Path) -> IO[bytes]:
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
        case ".zst":
            return io.BufferedReader(_Zstandard(path), _BLOCK)
        case _:
            return path.open("rb")


class _Zstandard(io.RawIOBase):
    """The unpacked bytes of a .zst file. Unlike the library's own stream it notices a cut file."""

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise CorpusError(
                f"{path}: reading .zst files needs one more package. "
                "Run: pip install 'isoglot[prepare]'"
            ) from error
        self._decompressor = zstandard.ZstdDecompressor()
        self._error: type[Exception] = zstandard.ZstdError
        self._frame: Any = None
        self._packed = b""
        self._pending = b""
        self._file = path.open("rb")

    @override
    def readable(self) -> bool:
        return True

    @override
    def close(self) -> None:
        self._file.close()
        super().close()

    @override
    def readinto(self, buffer: Any) -> int:
        # what does not fit the caller's buffer waits for the next call
        data = self._pending or self._unpack()
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self._pending = data[size:]
        return size

    def _unpack(self) -> bytes:
        """The next unpacked bytes, through all frames of the file; nothing at its end."""
        while True:
            if not self._packed:
                self._packed = self._file.read(_BLOCK // 8)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("the last frame does not end")
                return b""
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            try:
                data: bytes = self._frame.decompress(self._packed)
            except self._error as error:
                raise EOFError(str(error)) from error
            self._packed = b""
            if self._frame.eof:
                self._packed = self._frame.unused_data
                self._frame = None
            if data:
                return data
