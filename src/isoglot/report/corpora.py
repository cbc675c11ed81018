"""The languages of a corpus: how much there is of each, and how often each is drawn.

Languages are drawn with p ∝ N^α, N in sentences (XLM takes α = 0.7, XLM-R 0.3).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.corpus.manifest import FILE, Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isoglot.report.inputs import Named

ALPHAS = (0.7, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One language (or pair) of a corpus, for training."""

    language: str
    sentences: int
    tokens: int
    share: float
    """Of all tokens of its kind."""
    drawn: tuple[float, ...]
    """Probability to be drawn, for each of `ALPHAS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """All languages of the sources of one kind, the largest first."""

    corpus: str
    kind: str
    languages: tuple[Share, ...]


def corpora(inputs: Iterable[Named]) -> list[Shares]:
    """Shares of the prepared corpora among the inputs."""
    found = []
    for one in inputs:
        if (one.folder / FILE).is_file():
            manifest = read_manifest(one.folder)
            kinds = sorted({source.kind for source in manifest.sources.values()}, reverse=True)
            found += [_shares(one.name, kind, manifest) for kind in kinds]
    return found


def _shares(corpus: str, kind: str, manifest: Manifest) -> Shares:
    sentences: dict[str, int] = defaultdict(int)
    tokens: dict[str, int] = defaultdict(int)
    for source in manifest.sources.values():
        if source.kind == kind:
            for language, splits in source.languages.items():
                sentences[language] += splits["train"].rows
                tokens[language] += sum(splits["train"].tokens.values())
    weights = [sum(number**alpha for number in sentences.values() if number) for alpha in ALPHAS]
    shares = [
        Share(
            language=language,
            sentences=sentences[language],
            tokens=number,
            share=number / max(sum(tokens.values()), 1),
            drawn=tuple(
                sentences[language] ** alpha / total if sentences[language] else 0.0
                for alpha, total in zip(ALPHAS, weights, strict=True)
            ),
        )
        for language, number in tokens.items()
    ]
    shares.sort(key=lambda share: -share.tokens)
    return Shares(corpus=corpus, kind=kind, languages=tuple(shares))
