"""Weights; no data. Encoders over packed rows, the mask rule, the LM head at sites, export.

Encoder.build(settings, vocabulary)  --rows-->  States  --sites-->  SiteLosses
export(encoder, folder, ...)         -->  a plain Hugging Face folder
export_sentences(model, folder, ...) -->  the same for sentence-transformers, with a head
"""

from isoglot.models.encoder import Encoder, ModelConfig, States
from isoglot.models.export import export
from isoglot.models.head import HeadConfig, SiteLosses
from isoglot.models.model_card import model_card
from isoglot.models.sentence_export import ExportConfig, SentenceHead, export_sentences

__all__ = [
    "Encoder",
    "ExportConfig",
    "HeadConfig",
    "ModelConfig",
    "SentenceHead",
    "SiteLosses",
    "States",
    "export",
    "export_sentences",
    "model_card",
]
