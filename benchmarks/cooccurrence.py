"""Counting pairs beside scipy's sparse matrices: time and peak memory, in one run.

    python -m benchmarks.cooccurrence FOLDER [--tokens 50000000] [--vocabulary 60000]

Writes a corpus of tokens drawn by Zipf's law into FOLDER (and a tenth of it), then counts its pairs
with window 2, each way in a process of its own that may have 2 GiB of data:

    isoglot         `count_pairs`, two threads, by its `memory_mib`
    processes       the same in two processes: what a cluster would do
    scipy chunks    coo -> csr for 5M tokens at a time, added up
    scipy at once   coo -> csr of the whole corpus

Each begins with the mapped corpus. scipy counts each pair once, as we do, and its result stays in
memory; ours is on disk, sorted and ready to map, and its time holds that of loading compiled code
(0.3 s). The peak is the largest resident set, or their sum over processes, mapped files included.
What was counted is compared, pair by pair.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from scipy.sparse import coo_array

from benchmarks.memory import peak_bytes
from isoglot.corpus import Corpus, Manifest
from isoglot.corpus.cooccurrence.count import count_pairs
from isoglot.corpus.cooccurrence.pair_table import PairConfig, PairTable
from isoglot.corpus.storage.manifest import Counts, SourceEntry, SplitEntry, TokenizerEntry
from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows
from isoglot.corpus.storage.shards import ShardEntry
from isoglot.types import Vocabulary

if TYPE_CHECKING:
    from isoglot.corpus.engine.runner import Pool

WINDOW, SPECIAL = 2, 5
LIMIT = 2 * 2**30
CHUNK = 5_000_000
WAYS = {
    "isoglot 1024": {"memory_mib": 1024.0},
    "isoglot 512": {"memory_mib": 512.0},
    "processes 1024": {"memory_mib": 1024.0, "processes": True},
    "scipy chunks": {"chunk": CHUNK},
    "scipy at once": {"chunk": 10**12},
}


def generate(folder: Path, tokens: int, vocabulary: int) -> None:
    """One language: Zipf's law over shuffled ids, sentences of 5 to 45 tokens."""
    rng = np.random.default_rng(0)
    chances = np.cumsum(1 / (np.arange(vocabulary - SPECIAL) + 2.7))
    ids = rng.permutation(np.arange(SPECIAL, vocabulary, dtype=np.int32))
    writer = ShardWriter(folder, "text/en/train", {}, shard_tokens=4_000_000)
    for done in range(0, tokens, CHUNK):
        number = min(CHUNK, tokens - done)
        ends = np.cumsum(rng.integers(5, 46, number // 5))
        ends[np.searchsorted(ends, number)] = number
        lengths = np.diff(ends[: np.searchsorted(ends, number) + 1], prepend=0).astype(np.int32)
        drawn = np.searchsorted(chances, rng.random(number) * chances[-1])
        writer.append(TokenRows({"ids": ids[drawn]}, {"ids": lengths}, np.zeros_like(lengths)))
    entries = [{name: getattr(e, name) for name in e.__slots__} for e in writer.close()]
    (folder / "shards.json").write_text(json.dumps(entries))


def opened(folder: Path, size: int) -> Corpus:
    """The corpus of a folder, without a tokenizer."""
    shards = [ShardEntry(**entry) for entry in json.loads((folder / "shards.json").read_text())]
    rows = sum(shard.rows for shard in shards)
    split = SplitEntry(shards=tuple(shards), rows=rows, tokens={})
    none = Counts(read=0, kept=0, heldout=0, dropped={})
    source = SourceEntry(kind="text", languages={"en": {"train": split}}, counts={"en": none})
    manifest = Manifest(
        isoglot="0",
        fingerprint=str(folder),
        languages=("en",),
        tokenizer=TokenizerEntry(fingerprint="", size=size, files=()),
        sources={"text": source},
        settings={},
        inputs=(),
    )
    corpus = Corpus(folder, manifest)
    corpus.__dict__["vocabulary"] = Vocabulary(
        size=size,
        cls=0,
        sep=2,
        pad=1,
        mask=4,
        special=tuple(range(SPECIAL)),
        word_starts=np.ones(size, np.bool_),
    )
    return corpus


def ours(corpus: Corpus, out: Path, *, memory_mib: float, processes: bool = False) -> float:
    """Count into a folder; gives the seconds."""
    pool: Pool = "processes" if processes else "threads"
    begun = time.perf_counter()
    count_pairs(corpus, PairConfig(window=WINDOW, memory_mib=memory_mib), out, workers=2, pool=pool)
    return time.perf_counter() - begun


def scipys(corpus: Corpus, out: Path, *, chunk: int) -> float:
    """Add up a matrix for each chunk of tokens, keep the sum in a folder; gives the seconds."""
    begun = time.perf_counter()
    shards = corpus.table("text", "en", "train").shards
    tokens = np.concatenate([shard.values("ids") for shard in shards])
    lengths = np.concatenate([np.diff(shard.offsets("ids")) for shard in shards])
    ends = np.cumsum(lengths)
    sentence_of = np.repeat(np.arange(len(ends), dtype=np.int32), lengths)
    size, total, first = corpus.vocabulary.size, None, 0
    while first < len(tokens):
        last = int(ends[min(np.searchsorted(ends, first + chunk), len(ends) - 1)])
        for distance, share in ((1, 3), (2, 2)):
            near = sentence_of[first : last - distance] == sentence_of[first + distance : last]
            left = tokens[first : last - distance][near]
            right = tokens[first + distance : last][near]
            shares = np.where(left == right, 2 * share, share).astype(np.int32)
            pairs = (np.minimum(left, right), np.maximum(left, right))
            found = coo_array((shares, pairs), shape=(size, size)).tocsr()
            total = found if total is None else total + found
        first = last
    assert total is not None
    total.sort_indices()
    seconds = time.perf_counter() - begun
    out.mkdir(parents=True)
    for name in ("indptr", "indices", "data"):
        np.save(out / f"{name}.npy", getattr(total, name))
    return seconds


def measured(given: argparse.Namespace, folder: Path, way: str) -> dict[str, Any]:
    """Seconds and peak MB of a way in a process of its own; none where 2 GiB are too few."""
    command = [sys.executable, "-m", "benchmarks.cooccurrence", str(folder)]
    command += ["--vocabulary", str(given.vocabulary)]
    process = subprocess.Popen([*command, "--way", way], stdout=subprocess.PIPE, text=True)
    peak, watched = 0, psutil.Process(process.pid)
    while process.poll() is None:
        try:
            family = [watched, *watched.children(recursive=True)]
            peak = max(peak, sum(member.memory_info().rss for member in family))
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.02)
    assert process.stdout is not None
    said = json.loads(process.stdout.read() or "{}")
    return {"seconds": said.get("seconds"), "peak MB": max(peak, said.get("peak", 0)) >> 20}


def run_one(folder: Path, way: str, vocabulary: int) -> None:
    """Count in one way and say how long it took."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    function: Any = scipys if way.startswith("scipy") else ours
    out = folder / way.replace(" ", "-")
    shutil.rmtree(out, ignore_errors=True)
    try:
        seconds = function(opened(folder, vocabulary), out, **WAYS[way])
    except MemoryError:
        return
    print(json.dumps({"seconds": seconds, "peak": peak_bytes()}))


def same(folder: Path, way: str, vocabulary: int) -> bool:
    """Does a way have the very counts of scipy?"""
    table, kept = PairTable.open(folder / way.replace(" ", "-")), folder / "scipy-chunks"
    starts, others = np.load(kept / "indptr.npy"), np.load(kept / "indices.npy")
    sixths = np.load(kept / "data.npy")
    rows = np.repeat(np.arange(vocabulary, dtype=np.int64), np.diff(starts))
    return bool(
        np.array_equal(table.keys, rows * vocabulary + others)
        and np.allclose(table.log_counts, np.log(sixths / 6), rtol=0, atol=1e-6)
    )


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=50_000_000)
    parser.add_argument("--vocabulary", type=int, default=60_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each way; the best counts")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        run_one(given.folder, given.way, given.vocabulary)
        return
    for tokens in (given.tokens // 10, given.tokens):
        folder = given.folder / str(tokens)
        if not (folder / "shards.json").exists():
            generate(folder, tokens, given.vocabulary)
        print(f"\n{tokens:,} tokens, {given.vocabulary:,} ids, window {WINDOW}")
        for way in given.ways:
            found = [measured(given, folder, way) for _ in range(given.repeat)]
            times = [f["seconds"] for f in found if f["seconds"] is not None]
            best = f"{min(times):7.2f} s" if times else "does not fit"
            print(f"  {way:<16}{best}  {max(f['peak MB'] for f in found):6} MB", flush=True)
        if "scipy chunks" in given.ways:
            ways = [way for way in given.ways if not way.startswith("scipy")]
            equal = {way: same(folder, way, given.vocabulary) for way in ways}
            print("  the same counts as scipy:", json.dumps(equal))


if __name__ == "__main__":
    main()
