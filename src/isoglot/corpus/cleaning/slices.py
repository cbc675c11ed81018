"""Slices of cleaned text for encoding: large files are cut, slices of small files grouped.

A group holds about the text of one shard. The division depends on nothing but the text: the parts
in which a large file was cleaned are joined first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.clean_text import CleanRecord, TextPiece, offset_behind
from isoglot.corpus.engine.runner import task_key
from isoglot.corpus.reading.sources import Subset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isoglot.corpus.cleaning.clean_text import CleanedGroup
    from isoglot.corpus.storage.shards import Split

BYTES_PER_TOKEN = 3
"""Fewer bytes than most tokens have, so that a group seldom fills more than one shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSlice:
    """Consecutive lines of the cleaned text of one file group."""

    subset: Subset
    file: Path
    """The (first) raw file they come from."""
    pieces: tuple[TextPiece, ...]
    """One, or several where parts of a large file meet."""

    @property
    def bytes(self) -> int:
        """Its size."""
        return sum(piece.end.byte - piece.start.byte for piece in self.pieces)

    def records(self) -> Iterator[CleanRecord]:
        """Its lines."""
        return chain.from_iterable(piece.records(self.subset.kind) for piece in self.pieces)


def slice_texts(
    groups: Sequence[CleanedGroup], split: Split, slice_bytes: int
) -> Iterator[TextSlice]:
    """All slices of one split, in corpus order; each ends with the line that makes it large enough.

    A file group without text has one empty slice.
    """
    for _, found in groupby(whole_texts(groups, split), key=_file_group):
        parts = list(found)
        group = parts[0][0].task.group
        for pieces in _cut(parts, slice_bytes) or [(parts[0][1],)]:
            yield TextSlice(subset=group.subset, file=group.files[0], pieces=pieces)


def _file_group(part: tuple[CleanedGroup, TextPiece]) -> tuple[str, int]:
    group = part[0].task.group
    return group.subset.folder, group.number


def _cut(
    parts: Sequence[tuple[CleanedGroup, TextPiece]], slice_bytes: int
) -> list[tuple[TextPiece, ...]]:
    """The pieces of each slice of the parts of one file group."""
    slices: list[tuple[TextPiece, ...]] = []
    pieces: list[TextPiece] = []
    held = 0
    for cleaned, text in parts:
        start, end = text.start, text.end
        while held + end.byte - start.byte >= slice_bytes:
            offsets = cleaned.result.offsets[text.split]
            cut = offset_behind(text.text, offsets, start.byte + slice_bytes - held)
            slices.append((*pieces, replace(text, start=start, end=cut)))
            pieces, held, start = [], 0, cut
        if end.byte > start.byte:
            pieces.append(replace(text, start=start))
            held += end.byte - start.byte
    return [*slices, tuple(pieces)] if pieces else slices


def whole_texts(
    groups: Sequence[CleanedGroup], split: Split
) -> Iterator[tuple[CleanedGroup, TextPiece]]:
    """Each file group or part of one, and all its text of one split."""
    before, open_in, folder = 0, False, ""
    for cleaned in groups:
        task, result, duplicates = cleaned
        group = task.group
        if group.subset.folder != folder:
            before, folder = 0, group.subset.folder
        if group.part == 0:
            open_in = False
        # a part whose first line is text goes on with the document that was open before it
        continues = open_in and result.edges is not None and result.edges[0]
        documents_before = before - continues
        text = TextPiece(
            key=task_key(task),
            text=task.path(split),
            split=split,
            start=result.offsets[split][0],
            end=result.offsets[split][-1],
            documents_before=documents_before,
            duplicates=duplicates,
        )
        yield cleaned, text
        before = documents_before + result.documents
        if result.edges is not None:
            open_in = result.edges[1]


def group_slices(slices: Iterable[TextSlice], size: int) -> list[tuple[TextSlice, ...]]:
    """Consecutive slices of the same subset, grouped to about `size` bytes."""
    groups: list[list[TextSlice]] = []
    held = 0
    for part in slices:
        follows = groups and groups[-1][-1].subset.folder == part.subset.folder
        if follows and held + part.bytes <= size:
            groups[-1].append(part)
            held += part.bytes
        else:
            groups.append([part])
            held = part.bytes
    return [tuple(group) for group in groups]
