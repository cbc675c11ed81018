"""What tokenizing one shard leaves for the next stage: an Arrow file and the fates it counted.

The counts travel in the file, so a part is there with its counts or not at all, and a run that
was interrupted goes on with the parts it finds.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isoglot.corpus.disk import write_atomically
from isoglot.corpus.relational import SHARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from isoglot.types import IntArray

_COUNTS = b"counts"


def write_part(path: Path, table: pa.Table, counts: Counter[str]) -> None:
    """Writes a part, whole or not at all."""
    table = table.combine_chunks().replace_schema_metadata({_COUNTS: json.dumps(counts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_atomically(path, memoryview(sink.getvalue()))


def open_part(path: Path) -> pa.Table:
    """A part, mapped: its rows are read when they are asked for."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def counts_of(parts: Iterable[pa.Table]) -> Counter[str]:
    """The fates that parts counted, together."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(json.loads(part.schema.metadata[_COUNTS]))
    return total


def tally(fates: pa.ChunkedArray | npt.NDArray[np.str_]) -> Counter[str]:
    """How often each fate occurs."""
    names, numbers = np.unique(np.asarray(fates, dtype=np.str_), return_counts=True)
    return Counter(dict(zip(names.tolist(), numbers.tolist(), strict=True)))


def rows_of_shard(folder: Path, shard: int, order: Sequence[str]) -> pa.Table | None:
    """The rows that a join wrote for one shard, sorted; joins give them in any order."""
    files = sorted((folder / f"{SHARD}={shard}").glob("*.parquet"))
    if not files:
        return None
    table = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
    return table.sort_by([(column, "ascending") for column in order])


def token_lists(ids: IntArray, lengths: IntArray) -> pa.Array:
    """Rows of tokens from all ids and the length of each row."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids, pa.int32()))
