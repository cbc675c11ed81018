"""The streams a recipe can name. One more stream is one file here and one entry in `STREAMS`."""

from __future__ import annotations

from isoglot.batching.streams.base import Part, SequenceMaker, StreamConfig
from isoglot.batching.streams.pairs import ParallelStream
from isoglot.batching.streams.text import TextStream

STREAMS: tuple[type[StreamConfig], ...] = (TextStream, ParallelStream)

__all__ = ["STREAMS", "ParallelStream", "Part", "SequenceMaker", "StreamConfig", "TextStream"]
