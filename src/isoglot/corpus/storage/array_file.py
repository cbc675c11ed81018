"""Arrays in one file that processes map and share: the layout of safetensors, written in parts.

    8 bytes: length of the header | header: JSON, padded with spaces | the arrays, one by one

The header has names, types, shapes and places of the arrays, and under `__metadata__` the key of
what they were made from, small facts as JSON, and CRC-32s of itself and of all arrays. It is
written last, into space that was left for it, so arrays may be of any size. `safetensors.safe_open`
reads the files.
"""

from __future__ import annotations

import json
import mmap
import zlib
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from isoglot.atomic import write_array
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

HEADER_BYTES = 2**16
"""Space of the header."""
CHECKED_BYTES = 2**26
"""Files of up to so many bytes are compared with their CRC-32 when they are opened (60 ms)."""
_TYPES: dict[str, type[np.generic]] = {"U16": np.uint16, "U32": np.uint32, "I64": np.int64}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


class Arrays:
    """Arrays by name, and small facts about them, in memory."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
        self.arrays, self.facts = arrays, facts

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


class ArrayFile(Arrays):
    """Arrays of a mapped file; another process gets the path and maps it, too."""

    def __init__(self, path: Path, key: str) -> None:
        """Map a file.

        Raises:
            CorpusError: it is damaged, or was made from something else than `key` names.
        """
        self.path, self.key = path, key
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + size])
            about = header.pop("__metadata__")
            is_sound = about.pop("header_crc32") == _crc_of_header(about, header)
            views = {name: _view(data, 8 + size, entry) for name, entry in header.items()}
            ends = [8 + size, *(8 + size + entry["data_offsets"][1] for entry in header.values())]
            facts, found = json.loads(about["facts"]), about["key"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorpusError(f"{path}: is damaged ({error}).") from error
        if found != key:
            raise CorpusError(f"{path}: was made from another corpus or with other settings.")
        if max(ends) != len(data):
            raise CorpusError(f"{path}: is damaged: it has {len(data)} bytes and not {max(ends)}.")
        with memoryview(data) as content:
            if len(data) <= CHECKED_BYTES:
                is_sound &= zlib.crc32(content[8 + size :]) == int(about["crc32"])
        if not is_sound:
            raise CorpusError(f"{path}: is damaged: its content differs from what was written.")
        super().__init__(views, facts)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayFile, (self.path, self.key)


def _crc_of_header(about: Mapping[str, str], entries: Mapping[str, Any]) -> str:
    return str(zlib.crc32(json.dumps([about, entries]).encode()))


def _view(data: mmap.mmap, start: int, entry: dict[str, Any]) -> npt.NDArray[Any]:
    kind, (first, last) = np.dtype(_TYPES[entry["dtype"]]), entry["data_offsets"]
    view = np.frombuffer(data, kind, (last - first) // kind.itemsize, start + first)
    return view.reshape(entry["shape"])


class ArrayWriter:
    """Collects arrays in parts: in memory, or in a file."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self.facts: dict[str, Any] = {}

    def append(self, name: str, part: npt.NDArray[Any]) -> None:
        """Add a part to the end of an array; the parts of an array follow each other."""
        self._parts.setdefault(name, []).append(part)

    def discard(self, name: str) -> None:
        """Remove the array that was written last."""
        self._parts.pop(name, None)

    def arrays(self) -> Arrays:
        """What was collected."""
        joined = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        return Arrays(joined, self.facts)


class ArrayFileWriter(ArrayWriter):
    """Writes arrays into an open file."""

    def __init__(self, file: IO[bytes], key: str) -> None:
        super().__init__()
        self._file, self._key, self._crc = file, key, 0
        self._entries: dict[str, dict[str, Any]] = {}
        file.seek(8 + HEADER_BYTES)

    @override
    def append(self, name: str, part: npt.NDArray[Any]) -> None:
        begin = self._file.tell() - 8 - HEADER_BYTES
        if name not in self._entries:
            # safetensors knows no space between arrays
            assert begin % part.itemsize == 0, "arrays of larger numbers come first"
            self._entries[name] = {
                "dtype": _NAMES[part.dtype],
                "shape": [0, *part.shape[1:]],
                "data_offsets": [begin, begin],
                "crc": self._crc,
            }
        entry = self._entries[name]
        entry["shape"][0] += len(part)
        entry["data_offsets"][1] = begin + part.nbytes
        self._crc = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data, self._crc)
        write_array(self._file, part)

    @override
    def discard(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._crc = entry["crc"]
            self._file.seek(8 + HEADER_BYTES + entry["data_offsets"][0])
            self._file.truncate()

    def finish(self) -> None:
        """Write the header."""
        entries = {
            name: {key: value for key, value in entry.items() if key != "crc"}
            for name, entry in self._entries.items()
        }
        about = {"key": self._key, "facts": json.dumps(self.facts), "crc32": str(self._crc)}
        about["header_crc32"] = _crc_of_header(about, entries)
        header = json.dumps({"__metadata__": about, **entries}).encode()
        assert len(header) <= HEADER_BYTES, "facts are small"
        if self._file.tell() == 8 + HEADER_BYTES:
            self._file.truncate()  # no arrays
        self._file.seek(0)
        self._file.write(HEADER_BYTES.to_bytes(8, "little") + header.ljust(HEADER_BYTES))
