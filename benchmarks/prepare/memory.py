"""Is memory flat? The same preparation of 50, 150 and 450 MB of raw text.

    python -m benchmarks.prepare.memory WORK [--data DATA] [--sizes 50 150 450] [--workers 2]

Raw text is the novels, documentation and sentences of DATA/mono, over and over, each line with a
number before it so that none repeats another, in files of at most 10 MB of six languages. The
tokenizer is trained before, on 20 MB, and taken by all: training needs memory for its sample,
however large the corpus.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.prepare.watch import Watched, watch

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES = ("de", "el", "en", "es", "fr", "ro")
FILE_BYTES = 10_000_000


def lines_of(data: Path, language: str) -> Iterator[str]:
    """Numbered lines of a language, without end."""
    numbers = count()
    while True:
        for path in sorted((data / "mono").glob(f"*/{language}.*.xz")):
            with lzma.open(path, "rt", encoding="utf-8") as stream:
                for line in stream:
                    text = json.loads(line)["text"] if ".jsonl" in path.name else line
                    for part in text.splitlines():
                        if part.strip():
                            yield f"{next(numbers)} {part}\n"


def write_raw(data: Path, work: Path, megabytes: int) -> None:
    """Files of about 10 MB, until there are so many megabytes."""
    streams = {language: lines_of(data, language) for language in LANGUAGES}
    left = megabytes * 10**6
    file_bytes = min(FILE_BYTES, left // len(LANGUAGES) - 10_000)
    for number in count():
        for language, lines in streams.items():
            if left <= 0:
                return
            path = work / "raw" / f"{language}-{number:03d}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            size = 0
            with path.open("w", encoding="utf-8") as file:
                while size < min(file_bytes, left):
                    line = next(lines)
                    size += len(line.encode())
                    file.write(line)
            left -= size


def settings(tokenizer: str) -> str:
    files = ", ".join(f"{language}: ['raw/{language}-*.txt']" for language in LANGUAGES)
    return f"sources: {{text: {{files: {{{files}}}}}}}\ntokenizer: {{{tokenizer}}}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory at several sizes.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 150, 450])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    tokenizer = given.work / "tokenizer"
    if not tokenizer.is_dir():
        prepare(given, 20, "vocab_size: 16000, max_sentences: 30000", keep=tokenizer)
    for megabytes in given.sizes:
        seen = prepare(given, megabytes, f"folder: '{tokenizer.resolve()}'")
        print(
            f"{megabytes} MB: {seen.seconds:.0f} s, {megabytes / seen.seconds:.1f} MB/s, "
            f"{seen.cpu:.0f} s of CPU, at most {seen.peak / 2**20:,.0f} MiB",
            flush=True,
        )


def prepare(
    given: argparse.Namespace, megabytes: int, tokenizer: str, keep: Path | None = None
) -> Watched:
    """Prepare so much raw text; the tokenizer may be kept."""
    work = given.work / f"{megabytes}"
    shutil.rmtree(work, ignore_errors=True)
    write_raw(given.data, work, megabytes)
    file = work / "prepare.yaml"
    file.write_text(settings(tokenizer), encoding="utf-8")
    command = [sys.executable, "-m", "isoglot", "prepare", str(file)]
    seen = watch([*command, "--out", str(work / "corpus"), "--workers", str(given.workers)])
    if keep is not None:
        shutil.move(work / "corpus" / "tokenizer", keep)
    shutil.rmtree(work)
    return seen


if __name__ == "__main__":
    main()
