"""Requests and bytes of one epoch over an object store (moto's S3 server on loopback).

`python -m benchmarks.remote_order` reads every example of a text stream once, in both orders, with
a cache that holds a quarter of the shards.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.corpus.written import write_corpus
from tests.remote.servers import Traffic, flaky_proxy, object_store

from isoglot.batching.loader import open_streams
from isoglot.batching.mixture import Mixture
from isoglot.batching.streams import TextStream
from isoglot.corpus import Corpus
from isoglot.corpus.storage.manifest import fingerprint_of, write_manifest
from isoglot.objectives.mlm import MLM

SHARDS, SHARD_TOKENS, ROW = 64, 65_536, 512


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    rows = rng.integers(4, 39, (SHARDS * SHARD_TOKENS // 64, 64)).tolist()
    local = write_corpus(folder / "corpus", {"aa": rows}, shard_tokens=SHARD_TOKENS)
    entries = local.manifest.shards()
    fingerprint = fingerprint_of(entries, "")
    write_manifest(local.folder, replace(local.manifest, fingerprint=fingerprint))
    total = sum(entry.bytes for entry in entries)
    print(f"{len(entries)} shards, {total / 1e6:.1f} MB, cache of {total / 4e6:.1f} MB")
    os.environ.update(
        AWS_ACCESS_KEY_ID="a",
        AWS_SECRET_ACCESS_KEY="b",
        AWS_DEFAULT_REGION="us-east-1",
        ISOGLOT_CACHE_GB=str(total / 4e9),
    )
    import s3fs

    traffic = Traffic(every=0)
    with object_store() as store, flaky_proxy(store, traffic) as proxy:
        os.environ["AWS_ENDPOINT_URL"] = proxy
        s3 = s3fs.S3FileSystem()
        s3.mkdir("bucket")
        s3.put(str(folder / "corpus"), "bucket/corpus", recursive=True)
        for shuffle in ("blocks", "examples"):
            os.environ["ISOGLOT_CACHE"] = str(folder / shuffle)
            corpus = Corpus.open("s3://bucket/corpus")
            corpus.__dict__["vocabulary"] = local.vocabulary
            stream = replace(TextStream(objectives=("mlm",)), shuffle=shuffle)
            opened = open_streams(corpus, {"text": stream}, {"mlm": MLM()}, row_length=ROW)
            component = Mixture(opened, seed=0, stage=0).components[0]
            before = len(traffic.requests)
            traffic.sent_bytes = 0
            started = time.monotonic()
            for index in component.indices(np.arange(component.num_examples)).tolist():
                component.slices[0].example(index, 0.0)
            print(
                f"{shuffle}: {component.num_examples:,} examples, "
                f"{len(traffic.requests) - before:,} requests, "
                f"{traffic.sent_bytes / 1e6:,.1f} MB, {time.monotonic() - started:.0f} s"
            )


if __name__ == "__main__":
    main()
