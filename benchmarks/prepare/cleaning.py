"""Processor seconds of cleaning a megabyte, by language: plain, and with each option that costs.

    python -m benchmarks.prepare.cleaning WORK [--data DATA] [--megabytes 10] [--repeats 3]

The text is paragraphs of all languages of the data folder, a file each. A file is read, normalized,
checked, hashed for duplicates and written, in this process; compiled code is loaded before.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.prepare.folders import write_paragraphs

from isoglot.corpus.cleaning.cleaner import CleanConfig
from isoglot.corpus.cleaning.stage import CleanTask, clean_files
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.reading.sources import FileGroup, Subset

if TYPE_CHECKING:
    from isoglot.corpus.cleaning.sentences import SplitMode

VARIANTS: dict[str, tuple[SplitMode, float | None, bool]] = {
    "lines": ("lines", None, False),
    "`split: punctuation`": ("punctuation", None, False),
    "near-duplicates": ("lines", None, True),
    "language identification": ("lines", 0.9, False),
    "all three": ("punctuation", 0.9, True),
}
"""Name -> how texts are split, the confidence of language identification, near-duplicates."""


def task(path: Path, folder: Path, variant: str) -> CleanTask:
    split, confidence, near = VARIANTS[variant]
    language = path.stem
    subset = Subset(
        source="text",
        language=language,
        spelled=(language,),
        kind="text",
        format="lines",
        options={},
        split=split,
        files=(),
    )
    return CleanTask(
        group=FileGroup(subset=subset, number=0, files=(path,)),
        inputs=("",),
        folder=folder,
        config=CleanConfig(language_confidence=confidence),
        heldout_share=0.01,
        heldout_seed=0,
        pretokenize={},
        duplicates=DuplicatesConfig(near=near),
        buckets=16,
        excluded=None,
        excluded_files=(),
        dropped_file=None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor seconds of cleaning.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    raw = given.work / "raw"
    size = sum(write_paragraphs(given.data, raw, given.megabytes).values())
    files = sorted(raw.glob("*.txt"))
    best: dict[str, float] = {}
    for repeat in range(given.repeats + 1):
        for variant in VARIANTS:
            started = time.process_time()
            for path in files:
                clean_files(task(path, given.work / "cleaned" / path.stem, variant))
            if repeat:  # the first loads tables and compiled code
                seconds = time.process_time() - started
                best[variant] = min(best.get(variant, seconds), seconds)
    print(f"{size:.1f} MB of {len(files)} languages; load {os.getloadavg()[0]:.1f}")
    print("| | CPU s a MB | MB a CPU s |\n|---|--:|--:|")
    for variant, seconds in best.items():
        print(f"| {variant} | {seconds / size:.4f} | {size / seconds:.1f} |")


if __name__ == "__main__":
    main()
