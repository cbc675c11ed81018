"""The two sides of an encoder-decoder's example, each with its language as the first token.

source   <de> a b c </s>        what the encoder reads
target   <en> x y z             what the decoder is given
          x   y z </s>          what it must write, one place ahead
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isoglot.objectives.base import Objective, Prediction
from isoglot.types import IGNORE, IntArray, LongArray, Sequence

if TYPE_CHECKING:
    from isoglot.types import Vocabulary

NUM_EDGES = 2
"""Tokens of a source beside those of the text: the language, the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded(Objective):
    """What objectives that decode have in common."""

    decodes: ClassVar[bool] = True

    smoothing: float = 0.0
    """Label smoothing: the share of each target that is spread over all tokens, in training."""


class DecodedPrediction(Prediction):
    """The model half: the LM head's cross-entropy at the decoder's sites, smoothed or not."""

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.smoothing = smoothing


def source(ids: IntArray, language: int, vocabulary: Vocabulary) -> Sequence:
    """A text as the encoder reads it; nothing is hidden."""
    first = vocabulary.language_token(language)
    return _sequence(np.concatenate([[first], ids, [vocabulary.sep]]), language)


def target(ids: IntArray, language: int, vocabulary: Vocabulary) -> Sequence:
    """A text as the decoder is to write it, whole."""
    given = _sequence(np.concatenate([[vocabulary.language_token(language)], ids]), language)
    wanted = np.concatenate([ids, [vocabulary.sep]]).astype(np.int32)
    return _sequence(given.ids, language, targets=wanted)


def fragment(sequence: Sequence, start: int, stop: int, original: IntArray) -> Sequence:
    """A part of a source as the decoder is to write it, `start` above 0.

    It is given the language, and the tokens before those to write, all at their own positions.
    """
    before: LongArray = np.arange(start - 1, stop - 1)
    places = before if start == 1 else np.concatenate([[0], before])
    targets = np.full(len(places), IGNORE, np.int32)
    targets[len(places) - (stop - start) :] = original[start:stop]
    return _sequence(
        original[places], int(sequence.languages[0]), targets=targets, positions=places
    )


def _sequence(
    ids: LongArray | IntArray,
    language: int,
    *,
    targets: IntArray | None = None,
    positions: LongArray | None = None,
) -> Sequence:
    number = len(ids)
    if positions is None:
        positions = np.arange(number)
    return Sequence(
        ids=ids.astype(np.int32),
        positions=positions.astype(np.int32),
        languages=np.full(number, language, np.int32),
        sentences=np.zeros(number, np.int32),
        parts=np.zeros(number, np.int32),
        targets=np.full(number, IGNORE, np.int32) if targets is None else targets,
    )
