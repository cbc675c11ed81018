"""A tiny encoder-decoder, and rows for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from isoglot.batching.builder import RowBuffer
from isoglot.models.config import DecoderConfig, ModelConfig
from isoglot.models.seq2seq import Seq2Seq
from isoglot.models.seq2seq_export import export_seq2seq
from isoglot.objectives.seq2seq import build_source, build_target
from isoglot.types import Decoding

SETTINGS = ModelConfig(
    size="tiny",
    num_layers=2,
    hidden_size=32,
    num_heads=2,
    max_positions=64,
    dropout=0.0,
    decoder=DecoderConfig(),
)
RELEASED = replace(
    SETTINGS, language_embeddings="all", decoder=DecoderConfig(cross_attention_output="language")
)
TEXTS = ["kalo mitu sera.", "nope.", "tu tu lo ra."]


def build_seq2seq(corpus, settings=SETTINGS, seed=0):
    """An encoder-decoder with random weights, biases too."""
    torch.manual_seed(seed)
    found = Seq2Seq.build(settings, corpus.vocabulary, languages=corpus.languages).eval()
    with torch.no_grad():
        for weight in found.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return found


def export_to(found, folder, corpus):
    """Export an encoder-decoder; gives the limitations."""
    return export_seq2seq(
        found,
        folder,
        tokenizer_folder=corpus.tokenizer_folder,
        base_tokenizer="of the corpus",
        card="",
    )


def rows_of(*sequences):
    """A padded row for each sequence."""
    canvas = RowBuffer(len(sequences), max(map(len, sequences)), 1)
    for row, sequence in enumerate(sequences):
        canvas.put(sequence, row, 0)
    return canvas.rows()


def example(corpus, read=(10, 11, 12, 13, 14), write=(20, 21, 22)):
    vocabulary = corpus.vocabulary
    reads = rows_of(build_source(np.array(read, np.int32), 0, vocabulary))
    writes = rows_of(build_target(np.array(write, np.int32), 1, vocabulary))
    none = torch.zeros(0, dtype=torch.int64)
    decoding = Decoding(
        rows=writes,
        source_rows=torch.zeros(1, dtype=torch.int64),
        target_positions=none,
        targets=none,
        target_slices={},
    )
    return reads, decoding
