"""The joins of `isoglot knowledge link` at size: time, peak memory, embedded and on a local Ray.

    python benchmarks/joins.py [--mentions 5000000 --titles 2000000 --triples 1000000]

Tables are generated: titles of which four in ten redirect, mentions with a long tail, one wiki.
Each engine runs in a process of its own; the outputs are compared by a sum of hashes of all rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

SHARDS = 16


def title(number: int) -> str:
    return f"Title number {number:08d} of the wiki"


def generate(folder: Path, mentions: int, titles: int, triples: int) -> None:
    rng = np.random.default_rng(0)
    wiki, facts = folder / "wikipedia" / "en", folder / "wikidata"
    wiki.mkdir(parents=True)
    facts.mkdir()
    kinds = rng.choice(["article", "redirect", "disambiguation"], titles, p=[0.55, 0.4, 0.05])
    targets = rng.integers(0, titles, titles)
    for shard in range(SHARDS):
        numbers = range(shard * titles // SHARDS, (shard + 1) * titles // SHARDS)
        kind = kinds[numbers.start : numbers.stop]
        redirect = [title(targets[n]) if kinds[n] == "redirect" else None for n in numbers]
        columns = {
            "page": np.array(numbers),
            "title": [title(n) for n in numbers],
            "redirect": pa.array(redirect, pa.string()),
            "kind": kind,
        }
        write(wiki / f"pages-{shard:05d}.parquet", columns)
        count = mentions // SHARDS // 2 * 2
        drawn = (titles * 1.05 * rng.random(count) ** 2).astype(int)
        places = np.tile(np.array([0, 10], np.int32), count // 2)
        links = pa.StructArray.from_arrays(
            [pa.array(places), pa.array(places + 5), pa.array([title(n) for n in drawn])],
            ["start", "end", "target"],
        )
        offsets = pa.array(np.arange(0, count + 1, 2, dtype=np.int32))
        columns = {
            "page": np.sort(rng.integers(numbers.start, numbers.stop, count // 2)),
            "index": np.arange(count // 2, dtype=np.int32),
            "links": pa.ListArray.from_arrays(offsets, links),
        }
        write(wiki / f"sentences-{shard:05d}.parquet", columns)
    named = np.flatnonzero(rng.random(titles) < 0.9)
    items = rng.permutation(2 * len(named))[: len(named)] + 1
    write(
        facts / "sitelinks-00000.parquet",
        {"item": items, "language": ["en"] * len(named), "title": [title(n) for n in named]},
    )
    columns = {
        "subject": rng.choice(items, triples),
        "relation": rng.integers(1, 1300, triples).astype(np.int32),
        "object": rng.choice(items, triples),
    }
    write(facts / "claims-00000.parquet", columns)


def write(file: Path, columns: dict) -> None:
    pq.write_table(pa.table(columns), file, compression="zstd")


def join(tables: Path, out: Path, cluster: str | None) -> dict[str, float]:
    from daft import col

    from isoglot.corpus.knowledge import dataframes
    from isoglot.corpus.knowledge.link import joins
    from isoglot.corpus.knowledge.link.joins import resolve_titles, unique_pages

    laps: dict[str, float] = {}

    def lap(name: str, work) -> None:
        began = time.perf_counter()
        work()
        laps[name] = round(time.perf_counter() - began, 1)

    def table(name: str, *columns: str):
        return dataframes.read(sorted(tables.glob(f"{name}-*.parquet")), columns)

    pages, sentences = "wikipedia/en/pages", "wikipedia/en/sentences"
    claims = ("wikidata/claims", "subject", "relation", "object")
    sitelinks = ("wikidata/sitelinks", "title", "item")
    shard = dataframes.SHARD

    def described():
        kept = dataframes.read_folder(out / "page-entities").where(~col("item").is_null())
        return kept.select("item").distinct()

    def write(frame, name: str, by: str | None = None) -> None:
        dataframes.write(frame, out / name, by=by)

    read = dataframes.read_folder
    lap("start", lambda: dataframes.choose_engine(cluster))
    lap(
        "titles, once each",
        lambda: write(unique_pages(table(pages, "title", "kind", "redirect")), "pages"),
    )
    lap(
        "titles to items",
        lambda: write(
            resolve_titles(
                read(out / "pages"),
                table(*sitelinks).exclude(shard),
                joins.disambiguation_items(table(*claims)),
                max_redirects=4,
            ),
            "titles",
        ),
    )
    lap(
        "pages to items",
        lambda: write(
            joins.page_entities(table(pages, "page", "title", "kind"), read(out / "titles")),
            "page-entities",
            shard,
        ),
    )
    lap(
        "mentions to items",
        lambda: write(
            joins.link_entities(
                table(sentences, "page", "index", "links"),
                read(out / "titles"),
                read(out / "page-entities"),
            ),
            "link-entities",
            shard,
        ),
    )
    lap("triples", lambda: write(joins.triple_status(table(*claims), described()), "triples"))
    return laps


def digest(out: Path) -> dict[str, list[int]]:
    """Table -> rows, and a sum that does not depend on their order."""
    found = {}
    for name in ("titles", "page-entities", "link-entities", "triples"):
        files = [f for f in (out / name).rglob("*.parquet") if f.name != "empty.parquet"]
        frame = pl.read_parquet(files, hive_partitioning=True)
        hashes = frame.select(sorted(frame.columns)).hash_rows(seed=0).to_numpy()
        found[name] = [len(frame), int(hashes.sum(dtype=np.uint64))]
    return found


def child(tables: Path, out: Path, cluster: str | None) -> None:
    peak, done = [0], threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not done.wait(0.1):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            peak[0] = max(peak[0], total)

    watcher = threading.Thread(target=watch)
    watcher.start()
    laps = join(tables, out, cluster)
    done.set()
    watcher.join()
    if cluster is not None:
        import ray

        ray.shutdown()
    print(json.dumps({"seconds": laps, "peak_mb": peak[0] >> 20, "digest": digest(out)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mentions", type=int, default=5_000_000)
    parser.add_argument("--titles", type=int, default=2_000_000)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="+", default=["embedded", "local"])
    parser.add_argument("--child", nargs=3, metavar=("TABLES", "OUT", "ENGINE"))
    asked = parser.parse_args()
    if asked.child:
        tables, out, engine = asked.child
        child(Path(tables), Path(out), None if engine == "embedded" else engine)
        return
    with tempfile.TemporaryDirectory() as scratch:
        tables = Path(scratch) / "tables"
        generate(tables, asked.mentions, asked.titles, asked.triples)
        told = {}
        for engine in asked.engines:
            arguments = ["--child", str(tables), f"{scratch}/{engine}", engine]
            command = [sys.executable, __file__, *arguments]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sys.exit(f"{engine}: failed")
            told[engine] = json.loads(done.stdout.splitlines()[-1])
            seconds = told[engine]["seconds"]
            print(
                f"{engine}: {sum(seconds.values()):.1f} s, {told[engine]['peak_mb']:,} MB at most"
            )
            print("   " + ", ".join(f"{name} {lap} s" for name, lap in seconds.items()))
        digests = [entry["digest"] for entry in told.values()]
        rows = ", ".join(f"{name} {count:,}" for name, (count, _) in digests[0].items())
        print(f"rows: {rows}")
        same = all(found == digests[0] for found in digests)
        if len(digests) > 1:
            print("outputs are the same" if same else "OUTPUTS DIFFER")
        sys.exit(not same)


if __name__ == "__main__":
    main()
