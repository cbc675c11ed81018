"""Do time and memory of `isoglot prepare` grow as they should? Generated lines on a local Ray.

    python -m benchmarks.prepare_scale WORK 1 4 16 [--cpus 2] [--workers 1] [--near-share 0.1]
                                       [--equal-share 0.05] [--keep]

For each size in GB (decimals allowed), lines of two languages are generated, of which known shares
repeat an earlier line or differ from one in a word, as one large file and some smaller ones. Then
the command itself prepares them with near-duplicates on, on a Ray cluster of this machine and, with
`--workers N`, by N processes. Printed: seconds on the clock, of all cores and by stage, peak memory
of the driver, of the largest worker and of all processes together, the duplicates found, and a hash
of all files of the corpus, which must be the same for both. Needs about five times the size on the
disk of WORK.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil

LANGUAGES = ("en", "de")
SMALL_FILES = 6
"""Files beside the large one, a twentieth of the text each."""
_EVERY = 0.25
_WORDS = 50_000

ON_RAY = """
import sys
import ray
from isoglot.cli import main
# of this process alone: `ray stop` would end every cluster on the machine
cpus = int(sys.argv.pop(1))
ray.init("local", num_cpus=cpus, include_dashboard=False, log_to_driver=False)
try:
    main()
finally:
    ray.shutdown()
"""


@dataclass
class Generated:
    lines: int = 0
    equal: int = 0
    near: int = 0


def words(language: str) -> list[str]:
    """Made-up words, the same in every run."""
    rng = random.Random(language)
    return [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10)))
        for _ in range(_WORDS)
    ]


def generate(folder: Path, size: int, near_share: float, equal_share: float) -> Generated:
    """Files of about `size` bytes together."""
    made = Generated()
    folder.mkdir(parents=True)
    for language in LANGUAGES:
        known = words(language)
        rng = np.random.default_rng([0, *language.encode()])
        # lines are repeated from a window, so that memory is bounded
        recent: list[list[str]] = []
        for number in range(SMALL_FILES + 1):
            share = 1 / 20 if number else 1 - SMALL_FILES / 20
            left = int(size * share / len(LANGUAGES))
            with (folder / f"{language}-{number}.txt").open("w", encoding="utf-8") as file:
                while left > 0:
                    left -= file.write(_line(rng, known, recent, near_share, equal_share, made))
    return made


def _line(
    rng: np.random.Generator,
    known: list[str],
    recent: list[list[str]],
    near_share: float,
    equal_share: float,
    made: Generated,
) -> str:
    made.lines += 1
    chance, place = rng.random(), int(rng.integers(50_000))
    if recent and chance < near_share + equal_share:
        line = list(recent[place % len(recent)])
        if chance < near_share:
            # one word of more than twenty: nine tenths of the 5-grams stay
            line[int(rng.integers(len(line)))] = known[int(rng.integers(_WORDS))]
            made.near += 1
        else:
            made.equal += 1
    else:
        # words by rank, the frequent ones more often
        ranks = (_WORDS ** rng.random(24)).astype(int) - 1
        line = [known[rank] for rank in ranks]
        if len(recent) < 50_000:
            recent.append(line)
        else:
            recent[place] = line
    return " ".join(line) + "\n"


@dataclass
class Peaks:
    """Bytes of resident memory, at most."""

    driver: int = 0
    worker: int = 0
    together: int = 0
    said: str = ""
    seconds: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)
    """Process -> seconds of a core, which other work on the machine hardly changes."""


def watch(command: list[str]) -> Peaks:
    """Run a command to its end and look at the memory of its processes; raises if it fails."""
    found, started = Peaks(), time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=Path.cwd()
    )
    over = threading.Event()

    def look() -> None:
        while not over.wait(_EVERY):
            together = 0
            try:
                family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
            except psutil.NoSuchProcess:
                return
            for one in family:
                try:
                    name, memory = " ".join(one.cmdline()), one.memory_info()
                    times = one.cpu_times()
                except psutil.Error:
                    continue
                # pages of shared files and of Ray's object store belong to no process
                used = memory.rss - memory.shared
                together += used
                found.cpu[one.pid] = times.user + times.system
                if one.pid == process.pid:
                    found.driver = max(found.driver, used)
                elif name.startswith("ray::") or "spawn_main" in name:
                    found.worker = max(found.worker, used)
            found.together = max(found.together, together)

    watcher = threading.Thread(target=look)
    watcher.start()
    found.said, _ = process.communicate()
    found.seconds = time.monotonic() - started
    over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{found.said}")
    return found


def hash_of(corpus: Path) -> str:
    """One hash of the names and contents of all files."""
    digest = sha256()
    for path in sorted(corpus.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(corpus)}\n".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def settings(folder: Path) -> Path:
    files = ", ".join(f"{language}: ['raw/{language}-*.txt']" for language in LANGUAGES)
    path = folder / "prepare.yaml"
    path.write_text(
        f"sources: {{generated: {{files: {{{files}}}}}}}\n"
        "duplicates: {near: true}\n"
        "tokenizer: {model: bpe, vocab_size: 8000, max_sentences: 100000}\n",
        encoding="utf-8",
    )
    return path


def measure(given: argparse.Namespace, gigabytes: float) -> None:
    work = given.work / f"{gigabytes:g}"
    shutil.rmtree(work, ignore_errors=True)
    size = int(gigabytes * 1e9)
    free = shutil.disk_usage(given.work).free
    if free < 6 * size:
        raise SystemExit(
            f"{given.work}: {free / 1e9:.0f} GB are free, {6 * size / 1e9:.0f} needed."
        )
    started = time.monotonic()
    made = generate(work / "raw", size, given.near_share, given.equal_share)
    print(
        f"{gigabytes:g} GB: {made.lines:,} lines generated in {time.monotonic() - started:.0f} s, "
        f"{made.equal:,} equal to another, {made.near:,} nearly",
        flush=True,
    )
    file, hashes = settings(work), {}
    runs = {"ray": [sys.executable, "-c", ON_RAY, str(given.cpus)]} if given.cpus else {}
    runs |= {f"{number} workers": [sys.executable, "-m", "isoglot"] for number in given.workers}
    for name, program in runs.items():
        out = work / "corpus"
        options = ["--cluster", "auto"] if name == "ray" else ["--workers", name.split()[0]]
        seen = watch([*program, "prepare", str(file), "--out", str(out), *options])
        hashes[name] = hash_of(out)
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        dropped: dict[str, int] = {}
        for counts in manifest["sources"]["generated"]["counts"].values():
            for reason, number in counts["dropped"].items():
                dropped[reason] = dropped.get(reason, 0) + number
        stages = next(line for line in reversed(seen.said.splitlines()) if "MB/s in all" in line)
        print(
            f"  {name}: {seen.seconds:.0f} s, {size / 1e6 / seen.seconds:.1f} MB/s, "
            f"{sum(seen.cpu.values()):.0f} s of a core; driver "
            f"{seen.driver / 2**20:,.0f} MiB, largest worker {seen.worker / 2**20:,.0f} MiB, all "
            f"{seen.together / 2**20:,.0f} MiB\n    {stages}\n    dropped {dropped}\n"
            f"    {hashes[name]}",
            flush=True,
        )
        shutil.rmtree(out)
    if len(set(hashes.values())) > 1:
        raise SystemExit(f"{gigabytes:g} GB: the corpora differ: {hashes}")
    if not given.keep:
        shutil.rmtree(work)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of prepare at several sizes.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("sizes", type=float, nargs="+", help="GB of generated lines")
    parser.add_argument("--cpus", type=int, default=os.cpu_count(), help="of Ray; 0: without it")
    parser.add_argument("--workers", type=int, nargs="*", default=[1], help="also processes")
    parser.add_argument("--near-share", type=float, default=0.1)
    parser.add_argument("--equal-share", type=float, default=0.05)
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for gigabytes in given.sizes:
        measure(given, gigabytes)


if __name__ == "__main__":
    main()
