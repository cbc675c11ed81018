"""A corpus of any number of shards and tokens: time and memory to open it and to plan a step.

    python -m benchmarks.large_corpus make FOLDER --shards 100000 --shard-tokens 1000000
    python -m benchmarks.large_corpus open FOLDER --rows 8192 --row-length 512 --micro-rows 16

`make` writes a few real shards of random lengths and links them under all names, so that tokens
take little disk; manifest and index are real (2 bytes for a row). `open` does in a new process what
every rank does: it opens the corpus and a text stream, plans steps and reads random examples. Run
it twice: the first time it cuts the text into blocks. Memory is the process's own (RssAnon), apart
from mapped pages of files, which all processes share.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from isoglot.batching.loader import open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.planner import BatchConfig, Planner
from isoglot.batching.streams import TextStream
from isoglot.corpus import Corpus
from isoglot.corpus.storage.manifest import (
    Counts,
    Manifest,
    SourceEntry,
    SplitEntry,
    TokenizerEntry,
    fingerprint_of,
    write_manifest,
)
from isoglot.corpus.storage.row_index import (
    RowIndexTask,
    file_of_rows,
    key_of_rows,
    write_row_index,
)
from isoglot.corpus.storage.shard_writer import ShardWriter, TokenRows
from isoglot.corpus.storage.shards import ShardEntry
from isoglot.objectives.mlm import MLM
from isoglot.types import Cursor, Vocabulary

LANGUAGES = 10
TEMPLATES = 8
"""Different shards for each language; ext4 allows 65,000 links to a file."""
VOCABULARY = Vocabulary(
    size=1000,
    cls=0,
    sep=2,
    pad=1,
    mask=999,
    special=(0, 1, 2, 3, 999),
    word_starts=np.ones(1000, np.bool_),
)


def make(given: argparse.Namespace) -> None:
    """Write the corpus."""
    folder: Path = given.folder
    rng = np.random.default_rng(0)
    languages = [f"l{number}" for number in range(LANGUAGES)]
    sources: dict[str, dict[str, Any]] = {}
    every: list[ShardEntry] = []
    for language in languages:
        templates = [_template(folder, language, n, given, rng) for n in range(TEMPLATES)]
        (folder / "text" / language).mkdir(parents=True, exist_ok=True)
        entries = []
        for number in range(given.shards // LANGUAGES):
            one = templates[number % TEMPLATES]
            file = f"text/{language}/train-{number:06d}.arrow"
            (folder / file).unlink(missing_ok=True)
            os.link(folder / one.file, folder / file)
            entries.append(
                ShardEntry(
                    file=file, bytes=one.bytes, sha256=one.sha256, rows=one.rows, tokens=one.tokens
                )
            )
        rows, tokens = sum(e.rows for e in entries), sum(e.tokens["ids"] for e in entries)
        train = SplitEntry(shards=tuple(entries), rows=rows, tokens={"ids": tokens})
        none = SplitEntry(shards=(), rows=0, tokens={"ids": 0})
        sources[language] = {"train": train, "heldout": none}
        every += entries
    counts = {one: Counts(read=0, kept=0, heldout=0, dropped={}) for one in languages}
    source = SourceEntry(kind="text", languages=sources, counts=counts)
    manifest = Manifest(
        isoglot="0",
        fingerprint=fingerprint_of(every, "none"),
        languages=tuple(languages),
        tokenizer=TokenizerEntry(fingerprint="none", size=1000, files=()),
        sources={"text": source},
        settings={},
        inputs=(),
    )
    write_manifest(folder, manifest)
    for language in languages:
        began = time.perf_counter()
        shards = sources[language]["train"].shards
        write_row_index(
            RowIndexTask(
                corpus=folder,
                file=file_of_rows("text", language, "train"),
                key=key_of_rows(manifest.fingerprint, "text", language, "train"),
                columns=("ids",),
                shards=tuple((folder / one.file, one.rows) for one in shards),
            )
        )
        print(f"index of {language}: {time.perf_counter() - began:.1f} s", flush=True)
    tokens = sum(one.tokens["ids"] for one in every)
    print(f"{len(every):,} shards, {tokens:,} tokens")


def _template(
    folder: Path, language: str, number: int, given: argparse.Namespace, rng: np.random.Generator
) -> ShardEntry:
    """A shard of sentences of 25 tokens on average, in documents of 40 sentences."""
    drawn = rng.lognormal(3.0, 0.65, given.shard_tokens // 20).astype(np.int32) + 1
    lengths = np.minimum(drawn, 900)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), given.shard_tokens)) + 1]
    writer = ShardWriter(folder / ".templates", f"{language}-{number}", {}, shard_tokens=2**30)
    ids = rng.integers(4, 999, int(lengths.sum()), dtype=np.int32)
    documents = np.arange(len(lengths), dtype=np.int32) // 40
    writer.append(TokenRows({"ids": ids}, {"ids": lengths}, documents))
    (entry,) = writer.close()
    return ShardEntry(
        file=f".templates/{entry.file}",
        bytes=entry.bytes,
        sha256=entry.sha256,
        rows=entry.rows,
        tokens=entry.tokens,
    )


class Meter:
    """Prints seconds and CPU seconds since the last line, and memory beyond the first line's."""

    def __init__(self) -> None:
        self.first = own_memory()
        self.began, self.cpu = time.perf_counter(), time.process_time()

    def __call__(self, what: str) -> None:
        seconds, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu
        memory = own_memory() - self.first
        print(f"| {what} | {seconds:.3f} | {cpu:.3f} | {memory:.0f} |", flush=True)
        self.began, self.cpu = time.perf_counter(), time.process_time()


def own_memory() -> float:
    """MB of memory of this process that no file backs."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon"))
    return int(kilobytes) / 1e3


def open_all(given: argparse.Namespace) -> None:
    """Open the corpus and a stream, plan steps, and read examples."""
    print("| what | seconds | CPU seconds | MB |\n| --- | --: | --: | --: |")
    meter = Meter()
    corpus = Corpus.open(given.folder, verify="never")
    corpus.__dict__["vocabulary"] = VOCABULARY
    meter("open the corpus")
    stream = TextStream(objectives=("mlm",), unit=given.unit)
    opened = open_streams(corpus, {"text": stream}, {"mlm": MLM()}, row_length=given.row_length)
    meter(f"open the stream: {sum(one.num_examples for one in opened[0].slices):,} examples")
    mixture = Mixture(opened, seed=0, stage=0)
    meter("mixture")
    shape = BatchConfig(rows=given.rows, micro_rows=given.micro_rows, row_length=given.row_length)
    planner = Planner(mixture, shape, target_capacity=None)
    steps = planner.steps(Cursor(), rank=0, world=given.world)
    next(steps)
    meter("first plan")
    for _ in range(10):
        plans = next(steps)
    meter("ten plans")
    rng = np.random.default_rng(1)
    component = mixture.components[0]
    for index in rng.integers(component.num_examples, size=given.reads).tolist():
        one, inside = component.locate(index)
        one.example(inside, 0.5)
    meter(f"{given.reads:,} random examples")
    maps = len(Path("/proc/self/maps").read_text(encoding="utf-8").splitlines())
    print(f"{len(plans)} micro-batches a step of this rank; {maps:,} mappings")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "open"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--shard-tokens", type=int, default=1_000_000)
    parser.add_argument("--unit", default="full-sentences")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--micro-rows", type=int, default=16)
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--world", type=int, default=64)
    parser.add_argument("--reads", type=int, default=20_000)
    given = parser.parse_args()
    {"make": make, "open": open_all}[given.what](given)


if __name__ == "__main__":
    main()
