"""Batches by length: each sequence once, within the limit, and rows that are the sequences."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoglot.models.length_batches import IdArrays, batches_by_length, padded_rows

SEQUENCES = st.lists(st.lists(st.integers(5, 99), min_size=1, max_size=9), min_size=1, max_size=40)


@given(sequences=SEQUENCES, max_tokens=st.integers(1, 60))
def test_every_sequence_is_in_one_batch_and_batches_are_limited(sequences, max_tokens):
    lengths = np.array([len(one) for one in sequences])
    batches = list(batches_by_length(lengths, max_tokens))
    order = np.concatenate(batches)
    assert sorted(order.tolist()) == list(range(len(sequences)))
    assert (np.diff(lengths[order]) >= 0).all()
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= max_tokens


def test_many_sequences_of_one_length_are_batches_without_padding():
    lengths = np.array([5] * 30 + [6] * 30)
    batches = list(batches_by_length(lengths, 40))
    padded = [batch for batch in batches if len(set(lengths[batch])) > 1]
    assert not padded
    # the few of a length that do not fill a quarter of a batch share one with the next
    (mixed,) = batches_by_length(np.array([5] * 2 + [6] * 30), 200)
    assert len(mixed) == 32


@given(sequences=SEQUENCES, with_languages=st.booleans())
def test_rows_are_the_sequences_and_padding(sequences, with_languages):
    arrays = IdArrays.of(sequences)
    chosen = np.arange(len(sequences))[::-1]
    tokens = arrays.tokens_of(chosen)
    languages = arrays.ids % 3 if with_languages else None
    own = None if languages is None else languages[tokens]
    rows = padded_rows(arrays.ids[tokens], arrays.lengths[chosen], 1, own)
    longest = max(map(len, sequences))
    assert rows.unmasked == (len({len(one) for one in sequences}) == 1)
    for row, sequence in enumerate(reversed(sequences)):
        padding = longest - len(sequence)
        assert rows.ids[row].tolist() == sequence + [1] * padding
        assert rows.sequences[row].tolist() == [0] * len(sequence) + [-1] * padding
        assert rows.positions[row].tolist() == [*range(len(sequence)), *[0] * padding]
        expected = [token % 3 if with_languages else -1 for token in sequence]
        assert rows.languages[row].tolist() == expected + [-1] * padding
