"""Settings of the tasks that read features of a model as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from isoglot.ranges import Range, check_ranges

Aligner = Literal["transport", "entropic", "argmax", "itermax", "softmax"]
Pooling = Literal["mean", "cls"]
EncodeType = Literal["float32", "bfloat16"]

_LABELS = {
    ("center", True): "centered",
    ("margin", True): "by margin",
    ("language_embeddings", False): "without language embeddings",
}
"""How the scenario of a score names a setting; others are `name=value`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureConfig:
    """Settings of feature-based tasks; the defaults are those of the papers."""

    limit: Annotated[int | None, Range(1, 10**12)] = None
    """Most examples of each split, drawn from all of its parts; none: all."""
    center: bool = False
    """Subtract each language's mean vector from its sentences (Libovický et al. 2020)."""
    margin: bool = False
    """Rank sentences by ratio margin instead of cosine (Artetxe and Schwenk 2019)."""
    pooling: Pooling = "cls"
    """Sentence vectors of mining: the first token's state, as XTREME's BUCC script, or the mean."""
    num_neighbors: Annotated[int, Range(1, 10_000)] = 4
    """Nearest neighbors in the mean of a ratio margin."""
    aligner: Aligner = "transport"
    """Word aligner: XLM-Align's transport or its entropic form, SimAlign's two, awesome-align's."""
    encode_jointly: bool | None = None
    """Encode a sentence pair as one sequence for word alignment; none: only for XLM-Align's."""
    sinkhorn_iterations: Annotated[int, Range(1, 10_000)] = 2
    """Sinkhorn iterations of XLM-Align's aligners."""
    regularization: Annotated[float, Range(1e-6, 1e6)] = 0.1
    """Entropy regularization, on cosines, of the entropic aligner."""
    softmax_threshold: Annotated[float, Range(0, 1)] = 0.001
    """Probability above which the softmax aligner links two tokens, in both directions."""
    max_masks: Annotated[int | None, Range(1, 100)] = None
    """Longest answer to a cloze prompt, in tokens; none: the task's own (lama: 1, others: 5)."""
    encode_type: EncodeType = "float32"
    """Sentence vectors: type of the encoder's products; bfloat16 is meant for GPUs."""
    language_embeddings: bool = True
    """Add the language embeddings of a model that was trained with them on all tokens."""

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def is_joint(self) -> bool:
        """Whether a sentence pair is encoded as one sequence for word alignment."""
        if self.encode_jointly is not None:
            return self.encode_jointly
        return self.aligner in ("transport", "entropic")

    def scenario(self, kind: str) -> str | None:
        """The settings that a kind of task reads and that differ from the defaults, or none."""
        defaults = FeatureConfig()
        names = {
            "retrieval": ("center", "margin", "encode_type"),
            "mining": ("center", "pooling", "num_neighbors", "encode_type"),
            "alignment": ("aligner", "encode_jointly"),
            "probe": ("max_masks",),
        }.get(kind, ())
        if kind == "retrieval" and self.margin:
            names = (*names, "num_neighbors")
        if kind == "alignment" and self.aligner in ("transport", "entropic"):
            names = (*names, "sinkhorn_iterations")
        if kind == "alignment" and self.aligner == "entropic":
            names = (*names, "regularization")
        if kind == "alignment" and self.aligner == "softmax":
            names = (*names, "softmax_threshold")
        changed = [
            _LABELS.get((name, getattr(self, name)), f"{name}={getattr(self, name)}")
            for name in (*names, "limit", "language_embeddings")
            if getattr(self, name) != getattr(defaults, name)
        ]
        return ", ".join(changed) or None
