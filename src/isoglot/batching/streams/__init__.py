"""The streams a recipe can name. One more stream is one file here and one entry in `STREAMS`."""

from __future__ import annotations

from isoglot.batching.streams.base import Part, SequenceMaker, StreamConfig
from isoglot.batching.streams.knowledge_descriptions import DescriptionStream
from isoglot.batching.streams.knowledge_mentions import MentionStream
from isoglot.batching.streams.knowledge_triples import TripleStream
from isoglot.batching.streams.pairs import ParallelStream
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
    "MentionStream",
    "ParallelStream",
    "Part",
    "SequenceMaker",
    "StreamConfig",
    "TextStream",
    "TripleStream",
]
