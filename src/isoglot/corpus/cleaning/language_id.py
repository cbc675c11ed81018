"""Language identification with py3langid's model of 140 languages.

The model is naive Bayes over byte n-grams (Lui and Baldwin, 2012), found by an automaton that reads
a text byte by byte. py3langid runs it in Python; here it is compiled and reads many texts at once,
several times as fast, with the same result.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from isoglot.languages import canonical, plain_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from isoglot.types import BoolArray, IntArray, LongArray

_SIMILAR = (
    "ar:arz,ary bs:hr,sr el:grc fa:tg grc:el he:hbo hr:bs,sr id:ms ku:sdh ms:id nn:no,da no:nn,da "
    "sr:hr,bs uz:uzs yue:zh,wuu zh:yue,wuu"
)
_CONFUSABLE = dict(entry.split(":") for entry in _SIMILAR.split())
"""Language -> others so similar that identification as one of them is no evidence."""

_MAX_BYTES = 1000
"""Bytes of a text that are read: more do not change the answer."""


class LanguageIdentifier:
    """A model of 140 languages."""

    def __init__(self) -> None:
        """Reads the model, 5 MB compressed and 60 MB in memory; use `open`, which caches it."""
        from py3langid import langid

        model = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
        # a language may have several columns, for its scripts
        codes = [canonical(name) for name in model.nb_classes]
        self.labels: tuple[str, ...] = tuple(dict.fromkeys(codes))
        self._columns = np.array([self.labels.index(code) for code in codes])
        self._moves = np.asarray(model.tk_nextmove)
        self._rows = np.asarray(model.tk_row, np.int64) << 8
        self._features = np.asarray(model.tk_output, np.int32)
        self._weights = np.asarray(model.nb_ptc, np.float32)
        self._priors = np.asarray(model.nb_pc, np.float32)

    @staticmethod
    @cache
    def open() -> LanguageIdentifier:
        """The model, read once in a process."""
        return LanguageIdentifier()

    def is_other(self, texts: Sequence[str], language: str, confidence: float) -> BoolArray:
        """Which texts are in another language with at least this probability.

        None of them if the model does not know the language.
        """
        own = plain_code(language)
        if own not in self.labels or not texts:
            return np.zeros(len(texts), np.bool_)
        near = {own, *_CONFUSABLE.get(own, "").split(",")}
        found = self.probabilities(texts)
        best = found.argmax(axis=1)
        accepted = np.array([label in near for label in self.labels])
        sure = found[np.arange(len(texts)), best] >= confidence
        return np.asarray(sure & ~accepted[best])

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(texts, labels): the probability of each language."""
        encoded = [
            (text.lower() if text.isupper() else text).encode("utf-8", "surrogatepass")[:_MAX_BYTES]
            for text in texts
        ]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        scores: npt.NDArray[np.float32] = _scores(
            np.frombuffer(b"".join(encoded), np.uint8),
            np.cumsum(lengths),
            self._moves,
            self._rows,
            self._features,
            self._weights,
            self._priors,
        )
        # the model's calibration: the longer a text, the less each feature counts
        scores /= np.sqrt(np.maximum(lengths, 1))[:, None]
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        found = np.zeros((len(self.labels), len(texts)), np.float32)
        for column, of_column in zip(self._columns.tolist(), scores.T, strict=True):
            found[column] += of_column
        found /= found.sum(axis=0)
        return found.T


@njit(cache=True)
def _scores(
    data: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    moves: npt.NDArray[np.unsignedinteger[Any]],
    rows: npt.NDArray[np.int64],
    features: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    priors: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:  # pragma: no cover - compiled
    """The log posterior of each class, for each text; 0 for a text without any feature.

    Features are added in ascending order, each to all texts that have it: its weights, half a
    kilobyte of 57 MB, are then read once.
    """
    found, times, stops = _features(data, ends, moves, rows, features, len(weights))
    scores = np.zeros((len(ends), len(priors)), np.float32)
    places = np.zeros(len(weights) + 1, np.int64)
    for feature in found:
        places[feature + 1] += 1
    places = np.cumsum(places)
    texts, weighted = np.empty(len(found), np.int32), np.empty(len(found), np.float32)
    next_place = places[:-1].copy()
    for text in range(len(ends)):
        if stops[text + 1] > stops[text]:
            scores[text] = priors
        for entry in range(stops[text], stops[text + 1]):
            place = next_place[found[entry]]
            next_place[found[entry]] += 1
            texts[place], weighted[place] = text, np.float32(math.log1p(times[entry]))
    for feature in range(len(weights)):
        for place in range(places[feature], places[feature + 1]):
            row, own, weight = scores[texts[place]], weights[feature], weighted[place]
            for label in range(len(row)):
                row[label] += weight * own[label]
    return scores


@njit(cache=True)
def _features(
    data: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    moves: npt.NDArray[np.unsignedinteger[Any]],
    rows: npt.NDArray[np.int64],
    features: npt.NDArray[np.int32],
    num_features: int,
) -> tuple[IntArray, IntArray, LongArray]:  # pragma: no cover - compiled
    """The distinct features of all texts, how often each occurs, and where those of a text end."""
    counts = np.zeros(num_features, np.int32)
    found, times = np.empty(len(data), np.int32), np.empty(len(data), np.int32)
    stops = np.zeros(len(ends) + 1, np.int64)
    start, number = 0, 0
    for text in range(len(ends)):
        state = 0
        for place in range(start, ends[text]):
            state = moves[rows[state] + data[place]]
            feature = features[state]
            if feature >= 0:
                if counts[feature] == 0:
                    found[number] = feature
                    number += 1
                counts[feature] += 1
        start = ends[text]
        for entry in range(stops[text], number):
            times[entry] = counts[found[entry]]
            counts[found[entry]] = 0
        stops[text + 1] = number
    return found[:number], times[:number], stops
