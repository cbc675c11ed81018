"""Do time and memory of `isoglot prepare` grow as they should? Generated lines on a local Ray.

    python -m benchmarks.prepare_scale WORK 1 4 16 [--cpus 2] [--workers 1] [--near-share 0.1]
                                       [--equal-share 0.05] [--keep]

For each size in GB (decimals allowed), lines of two languages are generated, of which known shares
repeat an earlier line or differ from one in a word, as one large file and some smaller ones. Then
the command itself prepares them with near-duplicates on, on a Ray cluster of this machine and, with
`--workers N`, by N processes. Printed: seconds on the clock, of all cores and by stage, peak memory
of the driver, of the largest worker and of all processes together, the duplicates found, and a hash
of all files of the corpus, which must be the same for both. Needs 4.2 times the size on the
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
_LENGTH = 24
"""Words of a line."""
_WINDOW = 50_000
_BLOCK = 10_000
"""Lines that may be repeated, and lines generated at a time."""

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
        text = Lines(language, near_share, equal_share, made)
        for number in range(SMALL_FILES + 1):
            share = 1 / 20 if number else 1 - SMALL_FILES / 20
            left = int(size * share / len(LANGUAGES))
            with (folder / f"{language}-{number}.txt").open("w", encoding="utf-8") as file:
                while left > 0:
                    left -= file.write(text.block())
    return made


class Lines:
    """Lines of one language, a block at a time: about 100 MB a second.

    Lines are repeated from a window of earlier ones, so that memory is bounded.
    """

    def __init__(
        self, language: str, near_share: float, equal_share: float, made: Generated
    ) -> None:
        self._near_share, self._equal_share, self._made = near_share, equal_share, made
        self._rng = np.random.default_rng([0, *language.encode()])
        known = words(language)
        self._inner = np.array([f"{word} " for word in known], dtype=object)
        self._last = np.array([f"{word}\n" for word in known], dtype=object)
        self._window = self._new(_WINDOW)
        self._started = False

    def _new(self, number: int) -> np.ndarray:
        """Ranks of words, the frequent ones more often."""
        return (_WORDS ** self._rng.random((number, _LENGTH))).astype(np.int32) - 1

    def block(self) -> str:
        """The next lines; the first block holds those that others repeat."""
        if not self._started:
            self._started = True
            self._made.lines += _WINDOW
            return self._text(self._window)
        lines, rng = self._new(_BLOCK), self._rng
        chance, places = rng.random(_BLOCK), rng.integers(_WINDOW, size=_BLOCK)
        repeated = chance < self._near_share + self._equal_share
        near = np.flatnonzero(chance < self._near_share)
        lines[repeated] = self._window[places[repeated]]
        # one word of more than twenty: nine tenths of the 5-grams stay
        lines[near, rng.integers(_LENGTH, size=len(near))] = rng.integers(_WORDS, size=len(near))
        self._window[places[~repeated]] = lines[~repeated]
        self._made.lines += _BLOCK
        self._made.near += len(near)
        self._made.equal += int(repeated.sum()) - len(near)
        return self._text(lines)

    def _text(self, lines: np.ndarray) -> str:
        text = self._inner[lines]
        text[:, -1] = self._last[lines[:, -1]]
        return "".join(text.ravel().tolist())


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
    if free < 4.5 * size:
        raise SystemExit(
            f"{given.work}: {free / 1e9:.0f} GB are free, {4.5 * size / 1e9:.0f} needed."
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
