"""How often each language of a stream is drawn: p proportional to N^alpha.

Alpha is a number, or goes linearly from `alpha` to `end_alpha` over the steps of a stage, as in the
annealed language learning of mmBERT (Marone et al., 2025), whose alpha falls from stage to stage
(0.7, 0.5, 0.3) while languages with less text are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoglot.batching.schedules import linear

if TYPE_CHECKING:
    from isoglot.batching.mixture import OpenStream
    from isoglot.batching.streams.base import LanguageSlice, StreamConfig
    from isoglot.types import FloatArray


def smoothed_shares(counts: FloatArray, alpha: float) -> FloatArray:
    """The share of each language, proportional to N^alpha."""
    powers = counts**alpha
    return np.asarray(powers / powers.sum(), dtype=np.float64)


def alpha_at(config: StreamConfig, step: int, steps: int) -> float:
    """The exponent of a stream in a step, from 0, of so many."""
    if config.end_alpha is None:
        return config.alpha
    return linear(config.alpha, config.end_alpha, step, steps)


def component_slices(stream: OpenStream) -> list[tuple[LanguageSlice, ...]]:
    """The slices of each component of a stream."""
    if stream.config.sampling == "epochs":
        return [stream.slices]
    return [(one,) for one in stream.slices]


def component_shares(stream: OpenStream, alpha: float) -> FloatArray:
    """The share of each component in the stream's draws."""
    slices, config = stream.slices, stream.config
    if config.sampling == "epochs":
        return np.ones(1)
    sizes = np.array(
        [s.num_tokens if config.alpha_unit == "tokens" else s.num_sentences for s in slices],
        dtype=np.float64,
    )
    languages = sorted({one.language for one in slices})
    language_of = np.array([languages.index(one.language) for one in slices])
    totals = np.bincount(language_of, weights=sizes).astype(np.float64)
    # several sources of one language share the language's probability by their sizes
    shares: FloatArray = smoothed_shares(totals, alpha)[language_of] * sizes / totals[language_of]
    return shares
