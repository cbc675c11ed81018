"""How fast a Wikipedia dump is read: `isoglot knowledge extract`, wikiextractor, mwparserfromhell.

    python benchmarks/dumps.py DUMPS... [--megabytes 200] [--slice 8] [--workers 1 2] [--plain]

The pages of the given dumps are repeated to one dump of this size, packed as a multistream bz2 of
100 pages a stream; MB are unpacked ones. Each reader takes all of it with each number of workers;
mwparserfromhell alone (parse, then text and links of every article) a slice, in one process.
wikiextractor runs as its own command, templates off; with one worker it has one process more, which
unpacks, so CPU seconds are told beside wall seconds. All numbers are of one run on one machine.
"""

from __future__ import annotations

import argparse
import bz2
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import mwparserfromhell

from isoglot.corpus.knowledge.dump_files import FileSlice, read_head
from isoglot.corpus.knowledge.dump_records import Records
from isoglot.corpus.knowledge.extract import ExtractConfig, extract
from isoglot.corpus.knowledge.mediawiki import Page, PageReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PAGES_A_STREAM = 100
_CLOSING = b"</mediawiki>\n"


def write_dumps(sources: Iterable[Path], folder: Path, size: int) -> tuple[Path, Path, int]:
    """A plain and a multistream dump of about `size` bytes, and the number of their pages."""
    sources = list(sources)
    head = read_head(sources[0], b"</siteinfo>", 1 << 18) + b"\n"
    pages = [
        record.data + b"\n"
        for source in sources
        for record in Records(FileSlice(path=source), b"<page>", b"</page>")
        if record.complete
    ]
    repeats = max(round(size / sum(map(len, pages))), 1)
    plain, packed = folder / "pages.xml", folder / "pages-multistream.xml.bz2"
    streams = [
        bz2.compress(b"".join(pages[at : at + _PAGES_A_STREAM]))
        for at in range(0, len(pages), _PAGES_A_STREAM)
    ]
    with plain.open("wb") as whole, packed.open("wb") as many:
        whole.write(head)
        many.write(bz2.compress(head))
        for _ in range(repeats):
            whole.writelines(pages)
            many.writelines(streams)
        whole.write(_CLOSING)
        many.write(bz2.compress(_CLOSING))
    return plain, packed, repeats * len(pages)


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds, processes that were started included."""

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    wall, cpu = time.perf_counter(), spent()
    work()
    return time.perf_counter() - wall, spent() - cpu


def run_extract(dump: Path, folder: Path, workers: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    # plain files are larger on disk: equal parts of text
    size = 16 if dump.suffix == ".xml" else 4
    config = ExtractConfig(wikipedia={"en": (str(dump),)}, check_site=False, slice_megabytes=size)
    extract(config, folder, workers=workers)


def run_wikiextractor(dump: Path, folder: Path, workers: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "wikiextractor.WikiExtractor", "--no-templates", "--quiet"]
    subprocess.run(
        [*command, "--processes", str(workers), "--output", str(folder), str(dump)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run_mwparserfromhell(dump: Path, size: int) -> tuple[int, int]:
    """Text and links of the first pages; gives their number and their bytes."""
    done = pages = 0
    for page in PageReader(FileSlice(path=dump)):
        assert isinstance(page, Page)
        pages += 1
        done += len(page.text.encode())
        if page.redirect is None and page.namespace == 0:
            code = mwparserfromhell.parse(page.text)
            code.strip_code()
            code.filter_wikilinks()
        if done >= size:
            break
    return pages, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--slice", type=float, default=8, help="megabytes for mwparserfromhell")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--plain", action="store_true", help="read the unpacked dump too")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = []

    def tell(name: str, workers: int, pages: int, size: int, seconds: tuple[float, float]) -> None:
        wall, cpu = seconds
        results.append(
            {
                "reader": name,
                "workers": workers,
                "pages": pages,
                "bytes": size,
                "wall": wall,
                "cpu": cpu,
            }
        )
        print(
            f"| {name} | {workers} | {pages / wall:,.0f} | {size / wall / 1e6:.1f} "
            f"| {wall:.1f} | {cpu:.1f} |",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, packed, pages = write_dumps(given.dumps, folder, int(given.megabytes * 1e6))
        size = plain.stat().st_size
        dumps = {"bz2": packed} | ({"plain": plain} if given.plain else {})
        print(
            f"{pages:,} pages, {size / 1e6:.0f} MB, packed {packed.stat().st_size / 1e6:.0f} MB\n"
        )
        print("| reader | workers | pages/s | MB/s | wall s | CPU s |\n|---|--:|--:|--:|--:|--:|")
        for workers in given.workers:
            for label, dump in dumps.items():
                seconds = timed(lambda d=dump, w=workers: run_extract(d, folder / "X", w))
                tell(f"isoglot, {label}", workers, pages, size, seconds)
            for label, dump in dumps.items():
                seconds = timed(lambda d=dump, w=workers: run_wikiextractor(d, folder / "W", w))
                tell(f"wikiextractor, {label}", workers, pages, size, seconds)
        done: list[tuple[int, int]] = []
        seconds = timed(lambda: done.append(run_mwparserfromhell(packed, int(given.slice * 1e6))))
        tell("mwparserfromhell, bz2", 1, *done[0], seconds)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
