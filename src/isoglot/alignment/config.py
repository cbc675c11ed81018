"""Settings of `isoglot align`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from isoglot.errors import IsoglotError
from isoglot.evaluation.settings import Aligner, EncodeType, FeatureConfig
from isoglot.ranges import Range, check_choices, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignConfig:
    """How words are linked; the defaults are SimAlign's."""

    aligner: Aligner = "itermax"
    """SimAlign's itermax or argmax, awesome-align's softmax, XLM-Align's transport or entropic."""
    layer: Annotated[int | None, Range(0, 10_000)] = None
    """Layer whose states are compared, 0 for the embeddings; none: two thirds of the layers, 8 of
    12 as in SimAlign and awesome-align."""
    softmax_threshold: Annotated[float, Range(0, 1)] = 0.001
    """Probability above which softmax links two tokens, in both directions."""
    encode_jointly: bool | None = None
    """Encode a sentence and its translation as one sequence; none: only for XLM-Align's."""
    sinkhorn_iterations: Annotated[int, Range(1, 10_000)] = 2
    """Sinkhorn iterations of XLM-Align's aligners."""
    regularization: Annotated[float, Range(1e-6, 1e6)] = 0.1
    """Entropy regularization, on cosines, of the entropic aligner."""
    encode_type: EncodeType = "float32"
    """Type in which the encoder computes; bfloat16 is faster on a GPU, and changes a few links."""
    language_embeddings: bool = True
    """Add the language embeddings of a model that was trained with them on all tokens."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self)

    @property
    def features(self) -> FeatureConfig:
        """The settings of the aligner as evaluation has them."""
        return FeatureConfig(
            aligner=self.aligner,
            encode_jointly=self.encode_jointly,
            softmax_threshold=self.softmax_threshold,
            sinkhorn_iterations=self.sinkhorn_iterations,
            regularization=self.regularization,
            language_embeddings=self.language_embeddings,
        )

    def chosen_layer(self, num_layers: int) -> int:
        """The layer of a model with so many layers."""
        if self.layer is None:
            return max(1, round(num_layers * 2 / 3))
        if self.layer > num_layers:
            raise IsoglotError(f"--layer {self.layer}: the model has layers 0 to {num_layers}.")
        return self.layer
