"""A sample of distinct records by their hashes: bounded, and the same in whichever order they come.

A record is in the sample if its hash is below a threshold, which is halved whenever the sample has
grown too large. So a record that occurs twice is in it once, with its count; samples of parts of
the data, merged, are the sample of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

_WHOLE = 1 << 64


def record_hash(texts: tuple[str, ...], seed: int) -> int:
    """64 bits that depend on the texts and the seed alone."""
    # not the key of `held_out`, whose sentences are other ones
    key = b"adapt" + seed.to_bytes(8, "little")
    return int.from_bytes(blake2b("\t".join(texts).encode(), digest_size=8, key=key).digest())


@dataclass(slots=True, kw_only=True)
class HashSample:
    """The distinct records with the smallest hashes."""

    max_records: int
    max_characters: int
    min_records: int = 0
    """At least so many stay, however long they are."""
    threshold: int = _WHOLE
    records: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Hash -> texts."""
    counts: dict[int, int] = field(default_factory=dict)
    """Hash -> how often the record occurs."""
    characters: int = 0

    def add(self, hash_: int, texts: tuple[str, ...], count: int = 1) -> None:
        """Count a record, and keep it if its hash is small enough."""
        if hash_ >= self.threshold:
            return
        if hash_ in self.counts:
            self.counts[hash_] += count
            return
        self.records[hash_], self.counts[hash_] = texts, count
        self.characters += sum(map(len, texts))
        while self._is_full():
            self._shrink()

    def merge(self, other: HashSample) -> None:
        """Add the sample of another part of the data."""
        if other.threshold < self.threshold:
            self.threshold = other.threshold
            self._cut()
        for hash_, texts in other.records.items():
            self.add(hash_, texts, other.counts[hash_])

    def in_order(self) -> list[tuple[str, ...]]:
        """The records by their hashes, smallest first: a random order."""
        return [self.records[hash_] for hash_ in sorted(self.records)]

    @property
    def num_distinct(self) -> int:
        """Distinct records of all the data: counted, or estimated once the sample is bounded."""
        return len(self.records) * _WHOLE // self.threshold

    @property
    def duplicate_share(self) -> float:
        """Share of the records that occurred before, in the sample."""
        total = sum(self.counts.values())
        return 1 - len(self.counts) / total if total else 0.0

    def _is_full(self) -> bool:
        if len(self.records) <= self.min_records:
            return False
        return len(self.records) > self.max_records or self.characters > self.max_characters

    def _shrink(self) -> None:
        self.threshold //= 2
        self._cut()

    def _cut(self) -> None:
        for hash_ in [hash_ for hash_ in self.records if hash_ >= self.threshold]:
            self.characters -= sum(map(len, self.records.pop(hash_)))
            del self.counts[hash_]
