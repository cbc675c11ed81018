"""Weights; no data. Encoders over packed rows, the mask rule, the LM head at sites, export.

Encoder.build(settings, vocabulary)  --rows-->  States  --sites-->  SiteLosses
export(encoder, folder, ...)         -->  a plain Hugging Face folder
export_sentences(model, folder, ...) -->  the same for sentence-transformers, with a head
"""

from isoglot.models.config import DecoderConfig, ModelConfig
from isoglot.models.encoder import Encoder, States
from isoglot.models.export import export
from isoglot.models.head import HeadConfig, SiteLosses
from isoglot.models.model_card import model_card
from isoglot.models.sentence_export import ExportConfig, SentenceHead, export_sentences
from isoglot.models.seq2seq import Seq2Seq
from isoglot.models.seq2seq_build import is_seq2seq
from isoglot.models.seq2seq_export import export_seq2seq

__all__ = [
    "DecoderConfig",
    "Encoder",
    "ExportConfig",
    "HeadConfig",
    "ModelConfig",
    "SentenceHead",
    "Seq2Seq",
    "SiteLosses",
    "States",
    "export",
    "export_sentences",
    "export_seq2seq",
    "is_seq2seq",
    "model_card",
]
