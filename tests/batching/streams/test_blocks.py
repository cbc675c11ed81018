"""Blocks and kept rows from the index are those found in memory, whatever process finds them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.batching.dropped import Limit
from isoglot.batching.loader import open_streams
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.batching.streams.base import key_of_lengths
from isoglot.batching.streams.blocks import find_blocks
from isoglot.batching.streams.kept_rows import Chunk, KeptRows, find_kept
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.storage import derived
from isoglot.corpus.storage.array_file import ArrayWriter
from isoglot.corpus.storage.derived import INDEX
from isoglot.errors import CorpusError
from isoglot.objectives.mlm import MLM
from isoglot.objectives.tlm import TLM
from tests.batching.test_dropped import count_dropped
from tests.tiny_corpus import config as prepare_config
from tests.tiny_corpus import write_raw

OBJECTIVES = {"mlm": MLM(), "tlm": TLM()}
TEXT = TextStream(objectives=("mlm",))


def opened(corpus, config, row_length=64):
    return open_streams(corpus, {config.kind: config}, OBJECTIVES, row_length=row_length)[0].slices


def blocks_in_memory(table, config, limit):
    """Shard, start, stop and length of all blocks, from the shards' own offsets and documents."""
    found = []
    for number, shard in enumerate(table.shards):
        offsets, documents = shard.offsets("ids").astype(np.int64), shard["document"]
        if config.unit == "sentence":
            starts, stops = offsets[:-1], offsets[1:]
            lengths = stops - starts
        else:
            if config.across_documents:
                documents = np.zeros_like(documents)
            whole = config.unit == "full-sentences"
            starts, stops, lengths = find_blocks(
                offsets, documents, limit, int(config.separators), whole
            )
        fit = (lengths > 0) & (lengths <= limit)
        parts = (starts[fit], stops[fit], lengths[fit])
        found += [(number, *one) for one in zip(*(part.tolist() for part in parts), strict=True)]
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A corpus of many small shards."""
    folder = tmp_path_factory.mktemp("many")
    write_raw(folder / "raw")
    prepare(prepare_config(shard_tokens=300), folder / "corpus", base=folder / "raw")
    return Corpus.open(folder / "corpus")


@pytest.mark.parametrize("kept_rows", [1, 2**20], ids=["mapped", "in memory"])
@pytest.mark.parametrize("unit", ["full-sentences", "tokens", "sentence"])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("separators", [False, True])
def test_blocks_are_those_of_the_shards(many, monkeypatch, kept_rows, unit, across, separators):
    monkeypatch.setattr(derived, "KEPT_ROWS", kept_rows)
    config = replace(TEXT, unit=unit, across_documents=across, separators=separators)
    for examples in opened(many, config, row_length=20):
        table = many.table("text", examples.language, "train")
        assert len(table.shards) > 1
        expected = blocks_in_memory(table, config, limit=18)
        number = examples.num_examples
        spans = [examples.span(index) for index in range(number)]
        assert spans == [span[:3] for span in expected]
        sizes = examples.sizes(np.arange(number), np.zeros(number))[:, 0]
        assert sizes.tolist() == [length for *_, length in expected]
        assert examples.num_tokens == sizes.sum()
        shards = [sum(span[0] <= shard for span in spans) for shard in range(len(table.shards))]
        assert examples.block_ends().tolist() == shards
        sent = pickle.loads(pickle.dumps(examples))
        assert sent.example(number - 1, 0.0).ids.tolist() == (
            examples.example(number - 1, 0.0).ids.tolist()
        )


def test_slices_travel_as_paths(many, monkeypatch):
    """Spawned loader workers map the files, too."""
    monkeypatch.setattr(derived, "KEPT_ROWS", 1)
    (text, *_), (pairs, *_) = opened(many, TEXT), opened(many, ParallelStream(objectives=("tlm",)))
    for one in (text, pairs):
        content = pickle.dumps(one)
        arrays = [name for name in (b"numpy", b"_reconstruct") if content.count(name) > 40]
        assert not arrays
        assert len(content) < 20_000
    names = {path.name.rpartition("-")[0] for path in (many.folder / INDEX).rglob("train-*")}
    assert {"train-blocks", "train-pairs", "train"} <= names


def test_no_text_fits(many):
    with pytest.raises(CorpusError, match=r"no text fits a row of 2 tokens.*batch\.row_length"):
        opened(many, TEXT, row_length=2)


@given(
    good=st.lists(st.booleans(), min_size=1, max_size=60),
    cuts=st.integers(1, 20),
    max_kept=st.none() | st.integers(1, 30),
)
@settings(max_examples=150, deadline=None)
def test_kept_rows_are_found_by_their_number(good, cuts, max_kept):
    """Whichever of the two lists is stored, and in whatever chunks the rows were looked at."""
    mask, tokens = np.array(good), np.arange(len(good), dtype=np.int32) % np.int32(7)
    kept = np.flatnonzero(mask)[:max_kept]
    enough = max_kept is not None and len(kept) == max_kept
    looked_at = int(kept[-1]) + 1 if enough else len(mask)

    def chunks():
        for start in range(0, len(mask), cuts):
            part = slice(start, start + cuts)
            own = tokens[part]
            yield Chunk([Limit(mask[part], "are bad", "s", own)], own, own)

    writer = ArrayWriter()
    find_kept(writer, chunks, max_kept)
    found = KeptRows(writer.arrays())
    assert found.num_kept == len(kept)
    assert found.rows(np.arange(len(kept))).tolist() == kept.tolist()
    assert found.num_tokens == tokens[kept].sum()
    assert found.longest == (int(tokens[:looked_at].argmax()), int(tokens[:looked_at].max()))
    limits = [Limit(mask[:looked_at], "are bad", "s", tokens[:looked_at])]
    assert found.dropped == count_dropped(limits)
    rows = np.arange(len(mask) + 1)
    assert found.num_before(rows).tolist() == [int((kept < row).sum()) for row in rows]
    stored = writer.arrays()
    smaller = min(len(kept), looked_at - len(kept))
    assert sum(len(stored[name]) for name in ("kept", "before") if name in stored) == smaller


@given(st.lists(st.integers(0, 300), min_size=1, max_size=300), st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_the_value_that_keeps_99_percent_is_numpys(lengths, limit):
    sizes = np.array(lengths, np.int32)
    for one in count_dropped([Limit(sizes <= limit, "are long", "s", sizes)]):
        few = 100 * np.mean(sizes <= limit) < 99
        percentile = int(np.percentile(sizes, 99, method="higher"))
        assert one.enough == (percentile if few else None)


def test_lengths_have_keys():
    keys = [
        key_of_lengths(length, columns, 64)
        for columns in (1, 2)
        for length in (TLM().num_positions, lambda sizes: sizes.sum(axis=1) + 5)
    ]
    assert len(set(keys)) == 4
    assert keys[0] == key_of_lengths(TLM().num_positions, 1, 64)
