"""Batches of predictions: windows of similar lengths, within a number of tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from isoglot.finetuning import predict
from isoglot.finetuning.head import Window


def test_batches_hold_every_window_once_and_no_more_tokens_than_allowed():
    lengths = [*np.random.default_rng(0).integers(1, 60, 200).tolist(), 100, 130]
    windows = [
        Window(example=index, sequences=({"input_ids": np.zeros(length, np.int32)},))
        for index, length in enumerate(lengths)
    ]
    batches = predict._batches_by_length(windows, 100)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    padded = [len(batch) * max(lengths[index] for index in batch) for batch in batches]
    alone = [len(batch) == 1 for batch in batches]
    assert all(size <= 100 or single for size, single in zip(padded, alone, strict=True))
    # a batch ends where one more window would not have fitted, or where its one length ends
    for batch, following in pairwise(batches):
        own = {lengths[index] for index in batch}
        is_alike = len(own) == 1 and len(batch) * max(own) >= 25
        assert is_alike or (len(batch) + 1) * lengths[following[0]] > 100
