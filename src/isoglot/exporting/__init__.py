"""`isoglot export`: models of runs and encoders as transformers, sentence-transformers, ONNX.

run ─checkpoint→ transformers folder ─pooling chosen on held-out pairs→ sentence-transformers
                                     └→ ONNX
"""

from __future__ import annotations

from isoglot.exporting.export import FORMATS, ExportedModel, ExportOptions, export_model
from isoglot.exporting.pooling import PoolingChoice, choose_pooling

__all__ = [
    "FORMATS",
    "ExportOptions",
    "ExportedModel",
    "PoolingChoice",
    "choose_pooling",
    "export_model",
]
