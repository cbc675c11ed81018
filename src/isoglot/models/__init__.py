"""Model weights, without data: encoders over packed rows, the LM head, decoders, export.

Encoder.build(settings, vocabulary)     rows -> States -> losses at target positions
Seq2Seq.build(settings, vocabulary)     an encoder with a decoder
export_encoder, export_seq2seq          a plain Hugging Face folder
export_sentence_transformers            a sentence-transformers folder
optimizations                           what is changed in a transformers model, and why
"""

from __future__ import annotations

import logging

_NOISE = {
    "torchao": ("Failed to load", "Skipping import of cpp extensions"),
    "torch.utils._pytree": ("is an Enum subclass",),
}
"""What torchao says, by logger, when transformers imports it: its C++ kernels are not used here."""


def _quiet(logger: str) -> None:
    """Drop the messages of a logger that are noise."""
    parts = _NOISE[logger]
    logging.getLogger(logger).addFilter(
        lambda record: not any(part in record.getMessage() for part in parts)
    )


for _logger in _NOISE:
    _quiet(_logger)
