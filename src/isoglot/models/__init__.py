"""Weights; no data. Encoders over packed rows, the mask rule, the LM head at sites, export.

Encoder.build(settings, vocabulary)  --rows-->  States  --sites-->  SiteLosses
export(encoder, folder, ...)         -->  a plain Hugging Face folder
"""

from isoglot.models.encoder import Encoder, ModelConfig, States
from isoglot.models.export import export
from isoglot.models.head import HeadConfig, SiteLosses
from isoglot.models.model_card import model_card

__all__ = [
    "Encoder",
    "HeadConfig",
    "ModelConfig",
    "SiteLosses",
    "States",
    "export",
    "model_card",
]
