"""The lines, JSON objects and bytes of a raw file, plain or compressed (.gz, .bz2, .xz, .zst).

Lines end with LF, CR LF or CR; a byte order mark at the start is removed. A line that is not UTF-8
comes back as `Skipped("encoding")`, one of more than 64 MiB as `Skipped("endless")`, so that memory
is bounded. A missing or damaged file raises an error that names it, and the last readable byte.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

from isoglot import json_text
from isoglot.corpus.reading.reader import MAX_SHOWN_CHARACTERS, Skipped
from isoglot.errors import CorpusError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_LINE_BYTES = 64 << 20
"""Bytes of the longest line that is read."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[str | Skipped]:
    """The lines of one file, without their ends."""
    number = 0
    for data, endless in _whole_lines(read_blocks(path)):
        lines: Iterable[str | bytes] = [data] if endless else _lines(data, first=number == 0)
        for line in lines:
            number += 1
            if isinstance(line, str):
                yield line
            else:
                shown = line[: 4 * MAX_SHOWN_CHARACTERS].decode("utf-8", errors="replace")
                yield Skipped("endless" if endless else "encoding", shown, number)


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The same bytes in parts that end with a line; of an endless line its beginning."""
    pending: list[bytes] = []
    size = 0
    held = b""
    for more in blocks:
        block = held + more
        held = b"\r" if block.endswith(b"\r") else b""  # it may be half of a CR LF
        block = block.removesuffix(held)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not end:
            if size <= MAX_LINE_BYTES:
                pending.append(block)
            size += len(block)
            continue
        start = 0
        if size > MAX_LINE_BYTES:
            yield pending[0], True
            match = _LINE_END.search(block)
            assert match is not None, "the block holds an end"
            pending, start = [], match.end()
        yield b"".join([*pending, block[start:end]]), False
        pending, size = [block[end:]], len(block) - end
    if size > MAX_LINE_BYTES:
        yield pending[0], True
    elif size or held:
        yield b"".join([*pending, held]), False


def _lines(data: bytes, *, first: bool) -> Iterable[str | bytes]:
    """The lines of some bytes; a line that is not UTF-8 stays bytes."""
    if first:
        data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return map(_decoded, data.splitlines())
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _decoded(line: bytes) -> str | bytes:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | Skipped]]:
    """The number of each line, and its object, or why it has none."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, Skipped):
            yield number, line
        elif not line.strip():
            yield number, Skipped("blank", line, number)
        else:
            yield number, _object(line, number)


def text_at(found: dict[str, Any], name: str) -> str | None:
    """The text in a field; if there is none of this name, in a field inside others (`a.b`)."""
    value = found.get(name)
    if value is None:
        value = found
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def shown_object(found: dict[str, Any]) -> str:
    """An object as `--dropped` shows it."""
    try:
        return str(found)
    except RecursionError:  # printing takes more of the stack than reading
        return "an object nested too deeply to be shown"


def _object(line: str, number: int) -> dict[str, Any] | Skipped:
    try:
        found = json_text.parse(line)
    except ValueError:
        return Skipped("not JSON", line, number)
    if not isinstance(found, dict):
        return Skipped("not JSON", line, number)
    if "\\ud" in line or "\\uD" in line:
        # an escape may be a lone surrogate, which is no text
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            return Skipped("encoding", line, number)
    return found


_BLOCK = 1 << 20


def read_blocks(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file, 1 MiB at a time."""
    require_file(path)
    done = 0
    try:
        with _open(path) as stream:
            while block := stream.read(_BLOCK):
                yield block
                done += len(block)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # a damaged .gz or .bz2 stream is an OSError without a number
        if isinstance(error, OSError) and error.errno is not None:
            raise CorpusError(f"{path}: cannot be read ({error.strerror}).") from error
        raise CorpusError(
            f"{path}: is damaged or cut short after decompressed byte {done:,} ({error}). "
            "Download or make the file again, then run the command again."
        ) from error


def require_file(path: Path) -> None:
    """Raises a `CorpusError` unless the path is a regular file, naming its nearest neighbor.

    Pipes, devices and the files of the kernel have no size and may never end.
    """
    refuse_kernel_files(path)
    try:
        if path.is_file():
            return
        if path.is_dir():
            raise CorpusError(
                f"{path}: is a folder. Name the files in it, for example {path}/*.txt."
            )
        if path.exists():
            raise CorpusError(
                f"{path}: is a pipe, a socket or a device. Write its content to a file and name it."
            )
        if not path.parent.is_dir():
            raise CorpusError(f"{path}: there is no such file, nor its folder {path.parent}.")
    except OSError as error:
        shown = f"{str(path)[:80]}..." if len(str(path)) > 80 else str(path)
        raise CorpusError(f"{shown}: cannot be read ({error.strerror}).") from error
    neighbors = [
        entry.name
        for entry in path.parent.iterdir()
        if entry.is_file() and not entry.name.startswith(".")
    ]
    hint = nearest(path.name, neighbors) if neighbors else "that folder holds no files."
    raise CorpusError(f"{path}: there is no such file; {hint}")


def refuse_kernel_files(path: Path) -> None:
    """Raises a `CorpusError` for a path below /proc or /sys: reading there may never end."""
    try:
        place = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a null byte
        raise CorpusError(f"{str(path)[:80]!r}: is no path of a file ({error}).") from error
    if place.parts[1:2] in (("proc",), ("sys",)):
        raise CorpusError(f"{path}: is not on a disk but in /{place.parts[1]}. Name files of text.")


def _open(path: Path) -> IO[bytes]:
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
        case ".zst":
            import pyarrow as pa

            # unlike zstandard's stream it notices a cut file, and what it holds is bounded
            return cast("IO[bytes]", pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
        case _:
            return path.open("rb")
