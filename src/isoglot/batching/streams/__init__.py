"""The streams a recipe can name. To add one: one file here and one entry in `STREAMS`."""

from __future__ import annotations

from isoglot.batching.streams.base import LanguageSlice, StreamConfig
from isoglot.batching.streams.entities import MentionStream, TripleStream
from isoglot.batching.streams.knowledge import DescriptionStream
from isoglot.batching.streams.parallel import ParallelStream
from isoglot.batching.streams.text import TextStream

STREAMS: tuple[type[StreamConfig], ...] = (
    TextStream,
    ParallelStream,
    MentionStream,
    TripleStream,
    DescriptionStream,
)

__all__ = [
    "STREAMS",
    "DescriptionStream",
    "LanguageSlice",
    "MentionStream",
    "ParallelStream",
    "StreamConfig",
    "TextStream",
    "TripleStream",
]
