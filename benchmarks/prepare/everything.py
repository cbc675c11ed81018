"""All text and translations of the data folder in one corpus: time, memory, contamination.

    python -m benchmarks.prepare.everything WORK [--data DATA] [--workers 2 1] [--ray]

Prepares everything.yaml into WORK once for each number of workers, compares the corpora byte for
byte (and with --ray, with the one that a local Ray cluster makes), and prints what was found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from benchmarks.prepare.watch import watch

from isoglot.corpus import Corpus
from isoglot.report.corpus_stats import contaminated_records

SETTINGS = Path(__file__).with_name("everything.yaml")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


ON_RAY = """
import sys
import ray
from isoglot.cli import main
# of this process alone: `ray stop` would end every cluster on the machine
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
try:
    main()
finally:
    ray.shutdown()
"""


def prepare(out: Path, data: Path, program: list[str], *options: str) -> None:
    """Prepare into a new folder; prints the time, the speed and the memory."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, *program, "prepare", str(SETTINGS), "--out", str(out), *options]
    seen = watch(command, {**os.environ, "ISOGLOT_DATA": str(data)})
    size = Corpus.open(out, verify="never").manifest.total().bytes / 1e6
    stages = next(line for line in reversed(seen.said.splitlines()) if "MB/s in all" in line)
    print(
        f"{' '.join(options)}: {size:.0f} MB of text in {seen.seconds:.0f} s, "
        f"{size / seen.seconds:.1f} MB/s ({seen.cpu:.0f} s of CPU), "
        f"at most {seen.peak / 2**20:,.0f} MiB\n  {stages}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Prepare everything, and say how it went.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--ray", action="store_true", help="also on a local Ray cluster")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    folders = []
    for workers in given.workers:
        folders.append(given.work / f"workers-{workers}")
        prepare(folders[-1], given.data, ["-m", "isoglot"], "--workers", str(workers))
    if given.ray:
        folders.append(given.work / "ray")
        prepare(folders[-1], given.data, ["-c", ON_RAY], "--cluster", "auto")
    for folder in folders[1:]:
        assert contents(folder) == contents(folders[0]), f"{folder} differs"
    print(f"{len(folders)} corpora, the same byte for byte")
    manifest = Corpus.open(folders[0]).manifest
    total = manifest.total()
    print(f"{total.read:,} read = {total.kept:,} kept + {sum(total.dropped.values()):,} dropped")
    for reason, number in sorted(total.dropped.items(), key=lambda item: -item[1]):
        print(f"  {reason}: {number:,}")
    print("in evaluation files, by folder:")
    for folder, number in contaminated_records(manifest).items():
        print(f"  {folder}: {number:,}")


if __name__ == "__main__":
    main()
