"""Large files are read in parts, a task each: formats of one record a line, where a file allows it.

    find_starts (`isoglot.corpus.reading.line_ranges`) -> lines of each part are counted -> parts

Parts are about `PART_BYTES` long on disk, whatever the number of workers, and know the numbers of
their lines; the corpus is the same as if no file were split. Two files that are read line by line
together are split at the same lines.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.reading.files import count_lines
from isoglot.corpus.reading.line_ranges import COMPRESSED, LineRange, find_starts
from isoglot.corpus.reading.reader import LineReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.corpus.engine.runner import StageRunner
    from isoglot.corpus.reading.sources import FileGroup
    from isoglot.corpus.storage.shards import FileEntry

PART_BYTES = 1 << 26
"""Bytes on disk of a part of a large file."""
_NOTED_BYTES = 1 << 30
"""Files from this size on are named in a note if they cannot be split."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsTask:
    """A large file whose places to begin to read are looked for."""

    path: Path
    sha256: str
    part_bytes: int


def find_parts(task: StartsTask) -> list[int]:
    """The bytes at which its parts begin."""
    return [0, *find_starts(task.path, task.part_bytes)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesTask:
    """A part of a file whose lines are counted."""

    path: Path
    sha256: str
    part: LineRange

    @property
    def place(self) -> str:
        """The file and the part."""
        return f"{self.path} from byte {self.part.start:,}"


def count_part(task: LinesTask) -> int:
    """The number of lines."""
    return count_lines(task.path, task.part)


def split_large(
    groups: Sequence[FileGroup], inputs: Mapping[Path, FileEntry], runner: StageRunner
) -> list[FileGroup]:
    """The same groups in the same order, those of large files in parts."""
    large = [group for group in groups if _is_large(group, inputs)]
    if not large:
        return list(groups)
    starts = _find_starts(large, inputs, runner)
    split = [group for group in large if _can_be_split(group, starts, inputs)]
    ranges = _count_lines(split, starts, inputs, runner)
    wanted = {(group.subset.folder, group.number) for group in split}
    return [
        part
        for group in groups
        for part in (
            _parts(group, [ranges[path] for path in group.files])
            if (group.subset.folder, group.number) in wanted
            else [group]
        )
    ]


def _is_large(group: FileGroup, inputs: Mapping[Path, FileEntry]) -> bool:
    size = max(inputs[path].bytes for path in group.files)
    return size > PART_BYTES and isinstance(group.subset.reader(), LineReader)


def _find_starts(
    groups: Sequence[FileGroup], inputs: Mapping[Path, FileEntry], runner: StageRunner
) -> dict[Path, list[int]]:
    """For each file, the bytes at which its parts begin."""
    paths = list(dict.fromkeys(path for group in groups for path in group.files))
    tasks = [StartsTask(path=p, sha256=inputs[p].sha256, part_bytes=PART_BYTES) for p in paths]
    found = runner.run(
        "split files",
        find_parts,
        tasks,
        name=lambda task: str(task.path),
        sizes=[inputs[path].bytes for path in paths],
        cache=runner.cache(list[int], _is_complete, attrgetter("path")),
        # only compressed files are searched
        small=not any(path.suffix in COMPRESSED for path in paths),
    )
    return dict(zip(paths, found, strict=True))


def _can_be_split(
    group: FileGroup, starts: Mapping[Path, list[int]], inputs: Mapping[Path, FileEntry]
) -> bool:
    whole = [path for path in group.files if len(starts[path]) == 1]
    for path in whole:
        if inputs[path].bytes >= _NOTED_BYTES:
            _log.warning(
                "%s: one task reads all its %.1f GB. Local files that are plain or compressed by "
                "bgzip, pbzip2 or pzstd are read by many tasks.",
                path,
                inputs[path].bytes / 1e9,
            )
    return len(whole) < len(group.files) and all(inputs[path].bytes <= PART_BYTES for path in whole)


def _count_lines(
    groups: Sequence[FileGroup],
    starts: Mapping[Path, list[int]],
    inputs: Mapping[Path, FileEntry],
    runner: StageRunner,
) -> dict[Path, list[LineRange]]:
    """For each file, its parts with the numbers of their lines."""
    paths = dict.fromkeys(path for group in groups for path in group.files)
    tasks = [
        LinesTask(path=path, sha256=inputs[path].sha256, part=LineRange(start=start, end=end))
        for path in paths
        for start, end in zip(starts[path], [*starts[path][1:], None], strict=True)
    ]
    counts = runner.run(
        "count lines",
        count_part,
        tasks,
        name=attrgetter("place"),
        cache=runner.cache(int, _is_complete, attrgetter("place")),
    )
    ranges: dict[Path, list[LineRange]] = {path: [] for path in paths}
    for task, number in zip(tasks, counts, strict=True):
        found = ranges[task.path]
        before = _last(found[-1]) if found else 0
        found.append(replace(task.part, lines_before=before, lines=number))
    return ranges


def _is_complete(_task: Any, _result: Any) -> bool:
    return True  # these tasks write nothing


def _parts(group: FileGroup, ranges: Sequence[Sequence[LineRange]]) -> list[FileGroup]:
    """The parts of a group, given those of its files; parts without a line are left out."""
    if len({_last(found[-1]) for found in ranges}) > 1:
        return [group]  # files of different lengths: reading them tells where
    leader = max(ranges, key=len)
    cuts = [part.lines_before for part in leader if part.lines] + [_last(leader[-1])]
    return [
        replace(
            group,
            part=number,
            ranges=tuple(_lines_between(found, first, last) for found in ranges),
        )
        for number, (first, last) in enumerate(pairwise(cuts))
    ]


def _lines_between(parts: Sequence[LineRange], first: int, last: int) -> LineRange:
    """The lines [first, last) of a file, counted from 0, read from the nearest place before."""
    nearest = parts[bisect_right([part.lines_before for part in parts], first) - 1]
    return replace(nearest, end=None, skip=first - nearest.lines_before, lines=last - first)


def _last(part: LineRange) -> int:
    """The number of lines up to the end of a part."""
    return part.lines_before + (part.lines or 0)
