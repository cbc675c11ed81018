"""The first stage: the raw files of a cell become clean text, train and held-out apart.

    raw files --reader--> records --normalise, checks--> kept --split--> train.txt, heldout.txt

The files are temporary and serve the stages that follow: tokenizer training samples them, encoding
reads them once. A line is `document TAB text` for text and `first TAB second` for pairs; cleaned
text holds no tab.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.corpus.cells import Cell
from isoglot.corpus.clean import CleanConfig, normalise, why_dropped
from isoglot.corpus.disk import writing
from isoglot.corpus.heldout import SPLITS, Split, split_of
from isoglot.corpus.readers import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """All that is needed to clean one cell, in this process or another."""

    cell: Cell
    folder: Path
    """Where the cleaned text of the cell goes."""
    config: CleanConfig
    heldout_share: float
    heldout_seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The cleaned text of one cell, and what became of every record read."""

    cell: Cell
    folder: Path
    read: int
    rows: dict[Split, int]
    dropped: dict[str, int]

    def path(self, split: Split) -> Path:
        """The file of one split."""
        return cleaned_file(self.folder, split)

    def records(self, split: Split) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The document (0 for pairs) and the texts of every kept record."""
        with self.path(split).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                first, _, second = line[:-1].partition("\t")
                yield (int(first), (second,)) if self.cell.kind == "text" else (0, (first, second))


def cleaned_file(folder: Path, split: Split) -> Path:
    """Where the cleaned text of one split lies."""
    return folder / f"{split}.txt"


def clean_cell(task: CleanTask) -> Cleaned:
    """Reads, cleans and splits all files of one cell."""
    dropped: Counter[str] = Counter()
    rows: Counter[Split] = Counter(dict.fromkeys(SPLITS, 0))
    cell = task.cell
    with writing(task.folder), ExitStack() as stack:
        task.folder.mkdir(parents=True, exist_ok=True)
        files = {
            split: stack.enter_context(
                cleaned_file(task.folder, split).open("w", encoding="utf-8", newline="\n")
            )
            for split in SPLITS
        }
        for record in cell.reader().read(cell.files):
            if isinstance(record, Skipped):
                dropped[record.reason] += 1
                continue
            texts = tuple(map(normalise, record.texts))
            reason = why_dropped(texts, task.config)
            if reason is not None:
                dropped[reason] += 1
                continue
            split = split_of(texts, share=task.heldout_share, seed=task.heldout_seed)
            rows[split] += 1
            fields = texts if cell.kind == "pairs" else (str(record.document), *texts)
            files[split].write("\t".join(fields) + "\n")
    return Cleaned(
        cell=cell,
        folder=task.folder,
        read=rows.total() + dropped.total(),
        rows=dict(rows),
        dropped=dict(sorted(dropped.items())),
    )
