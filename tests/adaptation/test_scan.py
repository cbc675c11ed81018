from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, strategies

from isoglot.adaptation.scan import HashSample, record_hash

RECORDS = strategies.lists(strategies.text("abc", min_size=1, max_size=3), max_size=80)


def sample(records: list[str], *, most: int = 8, least: int = 0) -> HashSample:
    found = HashSample(max_records=most, max_characters=10**6, min_records=least)
    for text in records:
        found.add(record_hash((text,), 0), (text,))
    return found


def reference(records: list[str], most: int) -> tuple[set[str], int]:
    """Slow and obvious: halve the threshold until few enough distinct records are below it."""
    threshold = 1 << 64
    while True:
        kept = {text for text in records if record_hash((text,), 0) < threshold}
        if len(kept) <= most:
            return kept, threshold
        threshold //= 2


@given(RECORDS, strategies.integers(0, 80))
def test_parts_merged_are_the_whole(records, cut):
    whole = sample(records)
    kept, threshold = reference(records, 8)
    assert ({texts[0] for texts in whole.records.values()}, whole.threshold) == (kept, threshold)
    counts = Counter(records)
    assert {whole.records[h][0]: n for h, n in whole.counts.items()} == {
        text: counts[text] for text in kept
    }
    merged = sample(records[:cut])
    merged.merge(sample(records[cut:]))
    assert (merged.records, merged.counts, merged.threshold, merged.characters) == (
        whole.records,
        whole.counts,
        whole.threshold,
        whole.characters,
    )


def test_distinct_records_and_duplicates_are_estimated():
    rng = np.random.default_rng(0)
    records = [str(number) for number in rng.integers(0, 20_000, 30_000)]
    found = sample(records, most=4000)
    distinct = len(set(records))
    assert 2000 < len(found.records) <= 4000
    assert abs(found.num_distinct / distinct - 1) < 0.06
    assert abs(found.duplicate_share - (1 - distinct / 30_000)) < 0.02


def test_long_records_leave_at_least_a_few():
    found = HashSample(max_records=100, max_characters=50, min_records=5)
    for number in range(40):
        found.add(record_hash((str(number),), 0), ("x" * 60,))
    assert 2 <= len(found.records) <= 5
    assert found.characters == 60 * len(found.records)


def test_the_seed_decides_which():
    records = [str(number) for number in range(200)]
    first = sorted(records, key=lambda text: record_hash((text,), 0))[:20]
    other = sorted(records, key=lambda text: record_hash((text,), 1))[:20]
    assert len(set(first) & set(other)) < 10
