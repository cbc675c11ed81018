"""A batch in one piece of memory is the same batch."""

from __future__ import annotations

import torch

from isoglot.batching.loader import Loader, LoaderConfig, open_streams
from isoglot.batching.one_piece import in_one_piece
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream, TextStream
from isoglot.objectives import CAMLM, MASS, MLM, MoCo
from isoglot.types import Cursor


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
    """With side rows and labels, and with a decoder."""
    parallel = {"parallel": ParallelStream(objectives=("moco", "camlm"))}
    yield from batches(corpus, parallel, {"moco": MoCo(), "camlm": CAMLM()}, **settings)
    text = {"text": TextStream(objectives=("mass",), unit="sentence", others=("aa", "bb"))}
    yield from batches(corpus, text, {"mass": MASS(), "mlm": MLM()}, **settings)


def test_nothing_changes_but_where_it_lies(corpus):
    for batch in cases(corpus):
        packed = in_one_piece(batch)
        before, after = tensors_of(batch), tensors_of(packed)
        assert len(before) > 10
        for old, new in zip(before, after, strict=True):
            assert (old.dtype, old.shape) == (new.dtype, new.shape)
            assert torch.equal(old, new)
        assert len({tensor.untyped_storage().data_ptr() for tensor in after}) == 1
        assert (packed.spans, packed.counts, packed.cursor) == (
            batch.spans,
            batch.counts,
            batch.cursor,
        )


def test_workers_send_batches_so(corpus):
    plain, sent = cases(corpus), cases(corpus, workers=LoaderConfig(workers=1))
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
    found = in_one_piece(batch).labels["moco"]
    for name, tensor in batch.labels["moco"].items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
