"""Results, metrics and exhibits to one self-contained HTML page, tables and figures.

Reads the JSON files that other commands leave in their folders; never opens a model, never imports
torch.
"""

from __future__ import annotations

from isoglot.report.curves import draw_curves
from isoglot.report.errors import ReportError
from isoglot.report.inputs import Named, named

__all__ = ["Named", "ReportError", "draw_curves", "named"]
