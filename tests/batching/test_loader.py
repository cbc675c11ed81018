"""Batches of one or more processes and workers, full rows, and the single shared buffer."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from isoglot.batching.builder import RowBuffer
from isoglot.batching.loader import (
    Loader,
    LoaderConfig,
    open_streams,
    to_shared_buffer,
    worker_note,
)
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import RecipeError
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.mass import MASS
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.testbed import write_raw_files
from isoglot.types import Cursor, MaskRule, Sequence

STREAMS = {
    "text": TextStream(objectives=("mlm",), share=0.5),
    "parallel": ParallelStream(objectives=("tlm", "mlm"), share=0.5, order="shuffled"),
}
SHAPE = BatchConfig(rows=16, micro_rows=4, row_length=96)


def loader(corpus, *, streams=None, shape=SHAPE, **settings):
    opened = open_streams(
        corpus, streams or STREAMS, {"mlm": MLM(), "tlm": TLM()}, row_length=shape.row_length
    )
    return Loader(corpus, opened, shape, **settings)


def take(steps, number):
    return [next(steps) for _ in range(number)]


def same(one, other):
    return (
        all(
            torch.equal(tensor, getattr(other.rows, name))
            for name, tensor in one.rows.tensors().items()
        )
        and torch.equal(one.target_positions, other.target_positions)
        and torch.equal(one.targets, other.targets)
        and one.target_slices == other.target_slices
        and one.cursor == other.cursor
    )


@pytest.mark.parametrize("world", [2, 4])
def test_one_or_more_processes_see_the_same_global_batches(corpus, world):
    alone = take(loader(corpus).steps(Cursor()), 5)
    shared = [
        take(loader(corpus, rank=rank, world=world).steps(Cursor()), 5) for rank in range(world)
    ]
    for step in range(5):
        together = [shared[m % world][step][m // world] for m in range(4)]
        assert all(same(a, b) for a, b in zip(alone[step], together, strict=True))


def test_workers_change_nothing_and_prefetching_is_not_part_of_the_state(corpus):
    plain = take(loader(corpus).steps(Cursor()), 8)
    busy = loader(corpus, workers=LoaderConfig(num_workers=2, prefetch_factor=6)).steps(Cursor())
    first = take(busy, 3)  # the workers are far ahead by now
    cursor = first[-1][0].cursor
    del busy
    rest = take(loader(corpus, workers=LoaderConfig(num_workers=2)).steps(cursor), 5)
    for expected, found in zip(plain, first + rest, strict=True):
        assert all(same(a, b) for a, b in zip(expected, found, strict=True))


def test_seeds_and_stages_differ(corpus):
    def ids(**keys):
        return next(loader(corpus, **keys).steps(Cursor()))[0].rows.ids

    assert not torch.equal(ids(), ids(seed=1))
    assert not torch.equal(ids(), ids(stage=1))


def test_masks_differ_between_epochs(corpus):
    streams = {"text": TextStream(objectives=("mlm",), unit="sentence", languages=("cc",))}
    shape = BatchConfig(rows=64, micro_rows=64, row_length=96)
    steps = loader(corpus, streams=streams, shape=shape).steps(Cursor())
    targets = [tuple(batch[0].targets.tolist()) for batch in take(steps, 4)]
    assert len(set(targets)) == 4


def test_held_out_text_is_never_trained_on(corpus):
    streams = {"text": TextStream(objectives=("mlm",), unit="sentence")}
    trained = set()
    steps = loader(corpus, streams=streams).steps(Cursor())
    for batches in take(steps, 120):
        for batch in batches:
            rows = batch.rows
            original = rows.ids.flatten().clone()
            original[batch.target_positions] = batch.targets
            original = original.view_as(rows.ids)
            for row, owner in zip(original, rows.sequences, strict=True):
                for number in range(int(owner.max()) + 1):
                    trained.add(tuple(row[owner == number].tolist()[1:-1]))
    tables = {
        split: [corpus.table("text", language, split) for language in corpus.languages]
        for split in ("train", "heldout")
    }
    rows = {
        split: {tuple(table.ids("ids", i).tolist()) for table in of for i in range(table.num_rows)}
        for split, of in tables.items()
    }
    assert len(rows["heldout"]) > 5
    assert not trained & (rows["heldout"] - rows["train"])
    assert len(trained & rows["train"]) > 100


def test_a_shape_that_does_not_divide_is_refused_with_the_fix(corpus):
    with pytest.raises(RecipeError, match=r"multiple of batch\.micro_rows × processes = 12"):
        loader(corpus, world=3)


def test_a_micro_batch_that_cannot_hold_a_draw_is_refused(corpus):
    shape = BatchConfig(rows=4, micro_rows=1, row_length=96)
    with pytest.raises(RecipeError, match=r"cannot hold the 3 sequences.*set it to 3 or more"):
        loader(corpus, shape=shape)


def test_rows_know_whether_each_is_one_whole_sequence(corpus):
    cut = TextStream(objectives=("mlm",), unit="tokens", across_documents=True)
    found = []
    for streams in ({"text": cut}, {"text": replace(cut, unit="full-sentences")}, STREAMS):
        for batch in next(loader(corpus, streams=streams).steps(Cursor())):
            sequences, rules = batch.rows.sequences, batch.rows.rules
            assert batch.rows.unmasked == (not sequences.any() and not rules.any())
            found.append(batch.rows.unmasked)
            assert batch.to("cpu").rows.unmasked == batch.rows.unmasked
    assert {True, False} == set(found)


@pytest.mark.parametrize("rule", list(MaskRule))
def test_slots_are_never_whole(rule):
    """However full the row: some of its tokens do not see all of it."""
    ids = np.arange(6, dtype=np.int32)
    zeros = np.zeros_like(ids)
    sequence = Sequence(
        ids=ids, positions=ids, languages=zeros, sentences=zeros, roles=zeros, targets=zeros,
        rule=rule,
    )  # fmt: skip
    canvas = RowBuffer(1, 6, pad=1)
    canvas.put(sequence, 0, 0)
    assert canvas.rows().unmasked == (rule is MaskRule.FULL)


def test_padded_targets_have_one_size(corpus):
    steps = loader(corpus, pad_targets=True).steps(Cursor())
    sizes = {len(batch.target_positions) for batches in take(steps, 10) for batch in batches}
    assert len(sizes) == 1


def efficiency(found, steps, shape):
    tokens = sum(batch.num_tokens for batches in take(found, steps) for batch in batches)
    return tokens / (steps * shape.rows * shape.row_length)


@pytest.mark.slow
def test_rows_of_real_translations_are_full(data_folder, tmp_path):
    for code in ("en-web", "de", "sw"):
        raw = lzma.decompress((data_folder / "parallel/bible" / f"{code}.tsv.xz").read_bytes())
        lines = raw.decode().splitlines()[:8000]
        (tmp_path / f"{code}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files: dict[str, tuple[str, ...]] = {
        f"en-{code}": ("en-web.tsv", f"{code}.tsv") for code in ("de", "sw")
    }
    sources = {"bible": SourceConfig(kind="pairs", format="keyed", files=files)}
    tokenizer = TokenizerConfig(vocab_size=4000, max_sentences=4000)
    config = PrepareConfig(sources=sources, tokenizer=tokenizer)
    prepare(config, tmp_path / "corpus", base=tmp_path)
    shape = BatchConfig(rows=64, micro_rows=16, row_length=256)
    streams = {"parallel": ParallelStream(objectives=("tlm",))}
    found = loader(Corpus.open(tmp_path / "corpus"), streams=streams, shape=shape)
    share = efficiency(found.steps(Cursor()), 40, shape)
    assert share >= 0.97, share


def test_rows_of_generated_translations_are_full(tmp_path):
    write_raw_files(
        tmp_path, languages=("en", "tr", "zh"), num_sentences=500, num_pairs=3000, num_test_pairs=10
    )
    files: dict[str, tuple[str, ...]] = {f"en-{c}": (f"pairs/en-{c}.tsv",) for c in ("tr", "zh")}
    sources = {"pairs": SourceConfig(kind="pairs", format="tsv", files=files)}
    tokenizer = TokenizerConfig(vocab_size=2000, byte_fallback=False)
    prepare(PrepareConfig(sources=sources, tokenizer=tokenizer), tmp_path / "c", base=tmp_path)
    shape = BatchConfig(rows=64, micro_rows=16, row_length=128)
    streams = {"parallel": ParallelStream(objectives=("tlm",))}
    found = loader(Corpus.open(tmp_path / "c"), streams=streams, shape=shape)
    share = efficiency(found.steps(Cursor()), 40, shape)
    assert share >= 0.97, share


def test_a_fixed_capacity_costs_no_room(corpus):
    free, fixed = (
        efficiency(loader(corpus, pad_targets=fixed).steps(Cursor()), 50, SHAPE)
        for fixed in (False, True)
    )
    assert fixed > free - 0.01


RAISES = """
import sys
from pathlib import Path
from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.corpus import Corpus
from isoglot.objectives.mlm import MLM
from isoglot.types import Cursor

corpus = Corpus.open(Path(sys.argv[1]))
streams = {"text": TextStream(objectives=("mlm",))}
opened = open_streams(corpus, streams, {"mlm": MLM()}, row_length=64)
shape = BatchConfig(rows=2, micro_rows=2, row_length=64)
batches = Loader(corpus, opened, shape, workers=LoaderConfig(num_workers=1)).steps(Cursor())
next(batches)
raise RuntimeError("on purpose")
"""


def test_a_process_that_fails_does_not_wait_for_its_workers(corpus):
    ended = subprocess.run(
        [sys.executable, "-c", RAISES, str(corpus.folder)],
        timeout=90,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert "on purpose" in ended.stderr


def tensors_of(batch):
    found = []

    def note(tensor):
        found.append(tensor)
        return tensor

    batch.map(note)
    return found


def batches(corpus, streams, objectives, **settings):
    opened = open_streams(corpus, streams, objectives, row_length=96)
    shape = BatchConfig(rows=8, micro_rows=8, row_length=96)
    loader = Loader(corpus, opened, shape, **settings).steps(Cursor())
    return [next(loader)[0] for _ in range(3)]


def cases(corpus, **settings):
    """With auxiliary rows and labels, and with a decoder."""
    parallel = {"parallel": ParallelStream(objectives=("moco", "camlm"))}
    yield from batches(corpus, parallel, {"moco": MoCo(), "camlm": CAMLM()}, **settings)
    text = {
        "text": TextStream(objectives=("mass",), unit="sentence", target_languages=("aa", "bb"))
    }
    yield from batches(corpus, text, {"mass": MASS(), "mlm": MLM()}, **settings)


def test_nothing_changes_but_where_it_lies(corpus):
    for batch in cases(corpus):
        packed = to_shared_buffer(batch)
        before, after = tensors_of(batch), tensors_of(packed)
        assert len(before) > 10
        for old, new in zip(before, after, strict=True):
            assert (old.dtype, old.shape) == (new.dtype, new.shape)
            assert torch.equal(old, new)
        assert len({tensor.untyped_storage().data_ptr() for tensor in after}) == 1
        assert (packed.target_slices, packed.num_targets, packed.cursor) == (
            batch.target_slices,
            batch.num_targets,
            batch.cursor,
        )


def test_workers_send_batches_so(corpus):
    plain, sent = cases(corpus), cases(corpus, workers=LoaderConfig(num_workers=1))
    for batch, packed in zip(plain, sent, strict=True):
        assert all(map(torch.equal, tensors_of(batch), tensors_of(packed)))
        assert len({tensor.untyped_storage().data_ptr() for tensor in tensors_of(packed)}) == 1


def test_tensors_of_nothing_and_of_odd_sizes_have_their_place(corpus):
    (batch, *_) = cases(corpus)
    batch.labels["moco"] = {
        "none": torch.zeros(0, 3),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "flags": torch.tensor([True, False, True]),
    }
    found = to_shared_buffer(batch).labels["moco"]
    for name, tensor in batch.labels["moco"].items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_the_capacity_for_targets_is_what_the_streams_need_and_little_more(corpus):
    made = loader(corpus, streams={"text": STREAMS["text"]}, pad_targets=True)
    tokens = SHAPE.micro_batch_rows * SHAPE.row_length
    assert made.planner.target_capacity is not None
    assert made.planner.target_capacity % 64 == 0
    assert 0.15 * tokens <= made.planner.target_capacity <= 0.25 * tokens + 64


def test_more_workers_than_cores_are_told_once_and_not_by_torch(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert worker_note(LoaderConfig(num_workers=2), 1) is None
    assert worker_note(LoaderConfig(num_workers=0), 8) is None
    note = worker_note(LoaderConfig(num_workers=3), 2)
    assert note is not None
    assert "6 workers share 2 cores" in note
    assert "no faster than 1 for each process" in note


@pytest.mark.parametrize(("cores", "processes", "advice"), [(16, 1, 4), (6, 2, 3), (8, 8, None)])
def test_a_gpu_without_workers_is_told(cores, processes, advice, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    note = worker_note(LoaderConfig(), processes, on_gpu=True)
    assert (note is not None and f"num_workers={advice} " in note) == (advice is not None)
    assert worker_note(LoaderConfig(num_workers=1), processes, on_gpu=True) is None
