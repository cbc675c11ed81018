"""How features are read and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoglot.errors import require

Aligner = Literal["transport", "entropic", "argmax", "itermax"]
Pooling = Literal["mean", "cls"]


_WORDS = {("center", True): "centred", ("margin", True): "by margin"}
"""How a table says a setting that is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSettings:
    """Settings of the feature-based tasks; the defaults are those of the papers."""

    most: int | None = None
    """Examples of each part to use, evenly spaced; left out, all."""
    center: bool = False
    """Take each language's mean vector off before comparing sentences (Libovický et al. 2020)."""
    margin: bool = False
    """Rank sentences by margin instead of cosine (Artetxe and Schwenk 2019)."""
    pooling: Pooling = "cls"
    """Sentence vectors of mining: the first token's state, as XTREME's BUCC script, or the mean."""
    neighbours: int = 4
    """Neighbours over which a margin is taken."""
    aligner: Aligner = "transport"
    """How words are linked: XLM-Align's transport or its entropic form, or SimAlign's two."""
    together: bool | None = None
    """Encode a sentence with its translation; left out, only for the transport aligners."""
    sinkhorn: int = 2
    """Sinkhorn iterations of the transport aligners."""
    regularization: float = 0.1
    """Weight of the entropy, on cosines, of the entropic aligner."""
    masks: int | None = None
    """Longest answer to a cloze, in tokens; left out, the task's own (lama: 1, others: 5)."""

    def __post_init__(self) -> None:
        require(self.most is None or self.most > 0, "most must be at least 1.")
        require(self.neighbours > 0, "neighbours must be at least 1.")
        require(self.sinkhorn > 0, "sinkhorn must be at least 1.")
        require(self.regularization > 0, "regularization must be above 0.")
        require(self.masks is None or self.masks > 0, "masks must be at least 1.")

    @property
    def reads_together(self) -> bool:
        """Is a sentence encoded with its translation for word alignment?"""
        if self.together is not None:
            return self.together
        return self.aligner in ("transport", "entropic")

    def scenario(self, kind: str) -> str | None:
        """What sets the scores of a kind of task apart from those of the defaults, if anything."""
        usual = FeatureSettings()
        fields = {
            "retrieval": ("center", "margin"),
            "mining": ("center", "pooling", "neighbours"),
            "alignment": ("aligner", "together"),
            "probe": ("masks",),
        }.get(kind, ())
        if kind == "retrieval" and self.margin:
            fields = (*fields, "neighbours")
        if kind == "alignment" and self.aligner in ("transport", "entropic"):
            fields = (*fields, "sinkhorn")
        if kind == "alignment" and self.aligner == "entropic":
            fields = (*fields, "regularization")
        unusual = [
            _WORDS.get((name, getattr(self, name)), f"{name}={getattr(self, name)}")
            for name in (*fields, "most")
            if getattr(self, name) != getattr(usual, name)
        ]
        return ", ".join(unusual) or None
