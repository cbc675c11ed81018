"""Before and after: differences with intervals, the worst first, and what was chosen on which data.

Lines, pairs and gold links of the held-out data are the same for both models, so a difference has a
paired bootstrap over them (`intervals.difference_interval`). The layer of retrieval is chosen on
development pairs, for each model by itself and in the same way; that of word alignment on one half
of the sentence pairs, and scored on the other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isoglot import json_text
from isoglot.intervals import ExampleValues, difference_interval, means_of, unpack_rows
from isoglot.languages import language_sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isoglot.adaptation.scores import ModelScores

_SHOWN_AS_ZERO = 0.0005
"""Smaller changes are printed as 0.0 percent or points."""
Verdict = Literal["worse", "same", "better"]
BITS, RETRIEVAL, VECTORS = "bits per character", "retrieval", "sentence vectors"
ALIGNMENT, TOKENS = "alignment error rate", "tokens per word"
ENTITIES, ENTITIES_HEADS = "entity linking", "entity linking, heads"
OBJECTS, OBJECTS_HEADS = "object entailment", "object entailment, heads"
_OF_KNOWLEDGE = (ENTITIES, ENTITIES_HEADS, OBJECTS, OBJECTS_HEADS)
_HIGHER = (RETRIEVAL, VECTORS, *_OF_KNOWLEDGE)
"""Metrics of which a higher value is better."""
_SHARES = (*_HIGHER, ALIGNMENT)
"""Metrics that are printed in percent."""
_TAIL = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric before and after, on the same examples."""

    metric: str
    where: str
    """A language (`sw`), a direction (`en→sw`) or a pair (`de-en`)."""
    before: float
    after: float
    low: float
    """2.5 % quantile of after less before."""
    high: float
    """97.5 % quantile of after less before."""
    count: int
    """Examples: lines, or pairs."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a rise is an improvement."""
        return self.metric in _HIGHER

    @property
    def is_share(self) -> bool:
        """Whether the values are shares, to be printed in percent."""
        return self.metric in _SHARES

    @property
    def difference(self) -> float:
        """After less before."""
        return self.after - self.before

    @property
    def gain(self) -> float:
        """The improvement relative to before: 0.1 is 10 % better. Of shares, in points."""
        signed = self.difference if self.higher_is_better else -self.difference
        return signed if self.is_share else signed / max(abs(self.before), 1e-9)

    @property
    def verdict(self) -> Verdict:
        """Better or worse where the interval leaves out 0 and the change is not shown as 0.0."""
        if self.low <= 0 <= self.high or abs(self.gain) < _SHOWN_AS_ZERO:
            return "same"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something that was chosen by a score, and the data of that score."""

    what: str
    choice: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptScores:
    """All scores before and after."""

    comparisons: tuple[Comparison, ...]
    """By metric; within it, what got worse comes first."""
    choices: tuple[Choice, ...]
    speed: tuple[float, float]
    """Sentences per second before and after, on the machine of the adaptation."""

    def of(self, metric: str) -> tuple[Comparison, ...]:
        """The comparisons of one metric."""
        return tuple(one for one in self.comparisons if one.metric == metric)

    @property
    def worse(self) -> tuple[Comparison, ...]:
        """What got worse beyond its interval."""
        return tuple(one for one in self.comparisons if one.verdict == "worse")

    def to_json(self) -> dict[str, Any]:
        """The content of scores.json."""
        return {
            "comparisons": [
                {**asdict(one), "difference": one.difference, "verdict": one.verdict}
                for one in self.comparisons
            ],
            "choices": [asdict(one) for one in self.choices],
            "sentences_per_second": {"before": self.speed[0], "after": self.speed[1]},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> AdaptScores:
        """From scores.json."""
        computed = ("difference", "verdict")
        speed = found["sentences_per_second"]
        return cls(
            comparisons=tuple(
                Comparison(**{k: v for k, v in one.items() if k not in computed})
                for one in found["comparisons"]
            ),
            choices=tuple(Choice(**one) for one in found["choices"]),
            speed=(speed["before"], speed["after"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Development:
    """What was found on the development pairs, before the held-out data were looked at."""

    before: dict[str, list[str]]
    """Retrieval of the encoder before, as `ModelScores.retrieval`."""
    after: dict[str, list[str]]
    """Retrieval of the encoder after."""
    vectors: str
    """The vectors of the sentence-transformers folder, in words; empty if there is none."""
    own_vectors: str = ""
    """Those of the encoder before, in words; empty where they are the mean of the last layer."""

    def layers(self) -> tuple[int, int] | None:
        """The layers before and after with the best mean over pairs and directions, if any."""
        if not self.before or not self.after:
            return None
        return _best_layer(self.before), _best_layer(self.after)

    @property
    def num_pairs(self) -> int:
        """Development pairs of all pairs of languages."""
        return sum(unpack_rows(found[0]).shape[1] for found in self.after.values())


def _best_layer(found: Mapping[str, Sequence[str]]) -> int:
    by_layer = zip(*found.values(), strict=True)
    return int(np.argmax([fmean(map(_accuracy, of_pairs)) for of_pairs in by_layer]))


def compare(
    before: ModelScores,
    after: ModelScores,
    development: Development,
    speed: tuple[float, float],
    linking: tuple[Sequence[Comparison], Sequence[Choice]] = ((), ()),
) -> AdaptScores:
    """Compare two models; layers are chosen on the development pairs.

    `linking` are the comparisons on held-out mentions and facts, and what they chose
    (`linking.py`).
    """
    found = [
        *_by_language(BITS, before.bits, after.bits),
        *_by_language(TOKENS, before.tokens, after.tokens),
    ]
    choices: list[Choice] = []
    if before.retrieval:
        last = [len(next(iter(model.retrieval.values()))) - 1 for model in (before, after)]
        layers = development.layers() or tuple(last)
        found += _retrieval(before, after, layers)
        found += _sentence_vectors(before, after) if development.vectors else []
        choices += _retrieval_choices(layers, last, development)
    for name in before.alignment:
        errors, chosen = _alignment(name, before.alignment[name], after.alignment[name])
        found.append(errors)
        choices.append(chosen)
    found += linking[0]
    choices += linking[1]
    order = [BITS, RETRIEVAL, VECTORS, ALIGNMENT, *_OF_KNOWLEDGE, TOKENS]
    found.sort(key=lambda one: (order.index(one.metric), one.verdict != "worse", one.gain))
    return AdaptScores(
        comparisons=tuple(found),
        choices=tuple(choices),
        speed=speed,
    )


def _by_language(
    metric: str, before: Mapping[str, ExampleValues], after: Mapping[str, ExampleValues]
) -> list[Comparison]:
    both = [code for code in before if code in after]
    return [compared(metric, code, before[code], after[code]) for code in both]


def compared(metric: str, where: str, before: ExampleValues, after: ExampleValues) -> Comparison:
    """One metric of both models on the same examples."""
    low, high = difference_interval(before, after)
    if metric in _HIGHER and not np.any(before.numerators != after.numerators):
        # no example differs: as wide as n equal outcomes allow
        high = 1 - _TAIL ** (1 / len(before))
        low = -high
    return Comparison(
        metric=metric,
        where=where,
        before=before.value,
        after=after.value,
        low=low,
        high=high,
        count=len(before),
    )


def _retrieval(before: ModelScores, after: ModelScores, layers: Sequence[int]) -> list[Comparison]:
    """Both directions of each pair of languages, at each model's layer."""
    found = []
    for name, by_layer in before.retrieval.items():
        first, second = language_sides(name)
        old, new = unpack_rows(by_layer[layers[0]]), unpack_rows(after.retrieval[name][layers[1]])
        for row, where in enumerate((f"{first}→{second}", f"{second}→{first}")):
            found.append(compared(RETRIEVAL, where, means_of(old[row]), means_of(new[row])))
    return found


def _sentence_vectors(before: ModelScores, after: ModelScores) -> list[Comparison]:
    """The mean of both directions with the vectors that users of the folders get."""
    found = []
    for name in before.vectors:
        old, new = (unpack_rows(one.vectors[name]).mean(axis=0) for one in (before, after))
        found.append(compared(VECTORS, name, means_of(old), means_of(new)))
    return found


def _retrieval_choices(
    layers: Sequence[int], last: Sequence[int], development: Development
) -> list[Choice]:
    number = development.num_pairs
    if not number:
        data = "nothing: the corpus has no held-out pairs, so the last layer is read"
    else:
        data = f"{number:,} development pairs, held out of the corpus"
    choices = [
        Choice(
            what="layer of retrieval",
            choice=f"mean state of layer {layers[0]} of {last[0]} before, {layers[1]} of "
            f"{last[1]} after",
            data=data,
        )
    ]
    if development.vectors:
        before = (
            f"{development.own_vectors}, as its modules.json says"
            if development.own_vectors
            else "the mean of the last layer, which sentence-transformers takes for any encoder"
        )
        choice = f"{development.vectors} after; before, {before}"
        choices.append(Choice(what="sentence vectors", choice=choice, data=data))
    return choices


def _alignment(
    name: str, before: Sequence[ExampleValues], after: Sequence[ExampleValues]
) -> tuple[Comparison, Choice]:
    """The layer is chosen on the even sentence pairs, and scored on the odd ones."""
    layers = [
        int(np.argmin([_half(values, 0).value for values in model])) for model in (before, after)
    ]
    scored = [_half(model[layer], 1) for model, layer in zip((before, after), layers, strict=True)]
    choice = Choice(
        what=f"layer of word alignment, {name}",
        choice=f"layer {layers[0]} before, {layers[1]} after",
        data=f"the other half of the gold sentence pairs ({len(_half(before[0], 0)):,})",
    )
    return compared(ALIGNMENT, name, *scored), choice


def _half(values: ExampleValues, start: int) -> ExampleValues:
    return ExampleValues(values.numerators[start::2], values.denominators[start::2])


def _accuracy(packed: str) -> float:
    return float(unpack_rows(packed).mean())


def read_scores(file: Path) -> AdaptScores | None:
    """The scores of a finished adaptation; none where there are none that can be read."""
    try:
        return AdaptScores.from_json(json_text.parse(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
