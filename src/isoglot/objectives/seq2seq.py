"""What objectives of encoder-decoders share: source and target sequences, label smoothing.

Each side begins with a token of its language:

    source   <de> a b c </s>        the encoder's input
    target   <en> x y z             the decoder's input
              x   y z </s>          its targets, one place ahead
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from typing_extensions import override

from isoglot.objectives.base import Objective, ObjectiveModule, TokenPrediction
from isoglot.objectives.masking import new_sequence
from isoglot.ranges import Range
from isoglot.types import IGNORE, IntArray, LongArray, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Vocabulary

NUM_SPECIAL = 2
"""Special tokens of a source: the language and the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seq2SeqObjective(Objective):
    """Settings of objectives with a decoder."""

    uses_decoder: ClassVar[bool] = True
    uses_language_tokens: ClassVar[bool] = True

    label_smoothing: Annotated[float, Range(0, 1, below=True)] = 0.0
    """The share of each target that is spread over all tokens, in training."""

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.concatenate([sizes + NUM_SPECIAL, sizes + 1], axis=1).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(sizes[:, 0] + 1, np.int32)

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return DecoderPrediction(self.label_smoothing)


class DecoderPrediction(TokenPrediction):
    """The LM head's cross-entropy at the decoder's target positions, with label smoothing."""

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.label_smoothing = smoothing


def build_source(ids: IntArray, language: int, vocabulary: Vocabulary) -> Sequence:
    """A text as the encoder's input, nothing masked."""
    first = vocabulary.language_token(language)
    return new_sequence(np.concatenate([[first], ids, [vocabulary.sep]]), language)


def build_target(ids: IntArray, language: int, vocabulary: Vocabulary) -> Sequence:
    """A text as the decoder's input and targets."""
    inputs = np.concatenate([[vocabulary.language_token(language)], ids])
    targets = np.concatenate([ids, [vocabulary.sep]]).astype(np.int32)
    return new_sequence(inputs, language, targets=targets)


def build_fragment(sequence: Sequence, start: int, stop: int, original: IntArray) -> Sequence:
    """Tokens start .. stop of a source as the decoder's targets, `start` above 0.

    The decoder's input is the language and the token before each target, at their positions.
    """
    before: LongArray = np.arange(start - 1, stop - 1)
    places = before if start == 1 else np.concatenate([[0], before])
    targets = np.full(len(places), IGNORE, np.int32)
    targets[len(places) - (stop - start) :] = original[start:stop]
    return new_sequence(
        original[places], int(sequence.languages[0]), targets=targets, positions=places
    )
