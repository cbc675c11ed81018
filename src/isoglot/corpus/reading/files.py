"""The lines, JSON objects and bytes of a raw file, plain or compressed (.gz, .bz2, .xz, .zst).

Lines end with LF, CR LF or CR; a byte order mark at the start is removed. A line that is not UTF-8
comes back as `Skipped("encoding")`, one of more than 64 MiB as `Skipped("endless")`, so that memory
is bounded. A missing or damaged file raises an error that names it, and the last readable byte.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import zlib
from contextlib import ExitStack
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, cast

from typing_extensions import override

from isoglot import json_text
from isoglot.corpus.reading.line_ranges import WHOLE, LineRange
from isoglot.corpus.reading.reader import MAX_SHOWN_CHARACTERS, Skipped
from isoglot.errors import CorpusError, nearest
from isoglot.remote.paths import RemotePath, remote_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MAX_LINE_BYTES = 64 << 20
"""Bytes of the longest line that is read."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path, wanted: LineRange = WHOLE) -> Iterator[str | Skipped]:
    """The lines of one file or of a range of it, without their ends."""
    last = None if wanted.lines is None else wanted.skip + wanted.lines
    return islice(chain.from_iterable(_read_lines(path, wanted)), wanted.skip, last)


def _read_lines(path: Path, wanted: LineRange) -> Iterator[Sequence[str | Skipped]]:
    """Some lines at a time: those of a block of the file."""
    number = wanted.lines_before
    for data, endless in _whole_lines(_read_range(path, wanted)):
        if endless:
            number += 1
            yield [_unreadable("endless", data, number)]
            continue
        lines = _lines(data if number else data.removeprefix(_BYTE_ORDER_MARK), number)
        yield lines
        number += len(lines)


def count_lines(path: Path, wanted: LineRange) -> int:
    """The number of lines that `read_lines` gives for a range of bytes."""
    total = 0
    for data, endless in _whole_lines(_read_range(path, wanted)):
        if endless:
            total += 1
            continue
        total += data.count(b"\n") + (not data.endswith((b"\n", b"\r")))
        if b"\r" in data:
            total += data.count(b"\r") - data.count(b"\r\n")
    return total


def _read_range(path: Path, wanted: LineRange) -> Iterator[bytes]:
    """The bytes of a range's lines: from behind the first LF to the first LF behind its end."""
    before = wanted.start > 0
    for block in read_blocks(path, wanted.start, wanted.end):
        start = block.find(b"\n") + 1 if before else 0
        if before and not start:
            continue
        before = False
        yield block[start:]
    if wanted.end is None or before:
        return
    for block in read_blocks(path, wanted.end):
        end = block.find(b"\n") + 1
        yield block[:end] if end else block
        if end:
            return


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


def _lines(data: bytes, number: int) -> Sequence[str | Skipped]:
    """The lines of some bytes, of which `number` are before them."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return [_decoded(line, place) for place, line in enumerate(data.splitlines(), number + 1)]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _decoded(line: bytes, number: int) -> str | Skipped:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return _unreadable("encoding", line, number)


def _unreadable(reason: str, line: bytes, number: int) -> Skipped:
    return Skipped(reason, line[: 4 * MAX_SHOWN_CHARACTERS].decode("utf-8", "replace"), number)


def read_objects(
    path: Path, wanted: LineRange = WHOLE
) -> Iterator[tuple[int, dict[str, Any] | Skipped]]:
    """The number of each line, and its object, or why it has none."""
    for number, line in enumerate(read_lines(path, wanted), start=wanted.first):
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


def read_blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The decompressed bytes of a file, or of these bytes of it on disk, 1 MiB at a time.

    Of a compressed file, `start` and `end` are places where streams begin.
    """
    require_file(path)
    done = 0
    try:
        with ExitStack() as stack:
            stream = _open(path, start, end, stack)
            while block := stream.read(_BLOCK):
                yield block
                done += len(block)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # a damaged .gz or .bz2 stream is an OSError without a number
        if isinstance(error, OSError) and error.errno is not None:
            raise CorpusError(f"{path}: cannot be read ({error.strerror}).") from error
        raise CorpusError(
            f"{path}: is damaged or cut short after decompressed byte {done:,}"
            f"{f' of what begins at byte {start:,} of the file' if start else ''} ({error}). "
            "Download or make the file again, then run the command again."
        ) from error


def require_file(path: Path) -> None:
    """Raises a `CorpusError` unless the path is a regular file, naming its nearest neighbor.

    Pipes, devices and the files of the kernel have no size and may never end.
    """
    if isinstance(path, RemotePath):
        remote_info(str(path))
        return
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
        raise CorpusError(f"{str(path)[:80]!r}: is not a path of a file ({error}).") from error
    if place.parts[1:2] in (("proc",), ("sys",)):
        raise CorpusError(f"{path}: lies in /{place.parts[1]}, not on a disk. Name files of text.")


def _open(path: Path, start: int, end: int | None, stack: ExitStack) -> IO[bytes]:
    """The decompressed content of some bytes of a file; closed with the stack."""
    file: IO[bytes] = stack.enter_context(path.open("rb"))
    if start or end is not None:
        section = stack.enter_context(_Section(file, start, end))
        file = stack.enter_context(io.BufferedReader(section, _BLOCK))
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file)))
        case ".bz2":
            return stack.enter_context(bz2.BZ2File(file))
        case ".xz":
            return stack.enter_context(lzma.LZMAFile(file))
        case ".zst":
            import pyarrow as pa

            # unlike zstandard's stream it notices a cut file, and what it holds is bounded
            return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"))
        case _:
            return file


class _Section(io.RawIOBase):
    """The bytes [start, end) of a file."""

    def __init__(self, file: IO[bytes], start: int, end: int | None) -> None:
        file.seek(start)
        self._file, self._left = file, sys.maxsize if end is None else end - start

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)
