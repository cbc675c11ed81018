"""Which source tokens each target token is made from.

Reads two tokenizers and a dictionary; gives `Matches`: for every target id the kind of its match
and a weighted mean of source ids. In this order: a special token by its role; the same token; the
same text, normalised (`lookup`); a translation's token, or the mean of its pieces; the fallback.
MetaXLM (Chi et al. 2021), section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoglot.corpus.tokenizer import NO_SPACES
from isoglot.models.transplant.lookup import Lookup
from isoglot.models.transplant.surface import Surface
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.settings import Fallback, Translations
    from isoglot.models.transplant.tokens import Tokens

KINDS = (
    "special",
    "exact",
    "marker",
    "unicode",
    "case",
    "boundary",
    "dictionary",
    "pieces",
    "random",
    "zero",
)
"""How a target token came by its vector, in the order in which it is tried."""

Mean = dict[int, float]
"""Source ids and their weights, which add up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """For each target id, the source ids whose weighted mean it becomes.

    Those of target id `t` are `sources[offsets[t] : offsets[t + 1]]`; none where it is drawn or
    zero.
    """

    kinds: list[str]
    offsets: LongArray
    sources: LongArray
    weights: FloatArray

    @classmethod
    def of(cls, kinds: Sequence[str], means: Sequence[Mean]) -> Matches:
        """From a mean for each target id."""
        offsets = np.zeros(len(means) + 1, np.int64)
        np.cumsum([len(mean) for mean in means], out=offsets[1:])
        number = int(offsets[-1])
        sources = (index for mean in means for index in mean)
        weights = (weight for mean in means for weight in mean.values())
        return cls(
            kinds=list(kinds),
            offsets=offsets,
            sources=np.fromiter(sources, np.int64, number),
            weights=np.fromiter(weights, np.float64, number),
        )

    @classmethod
    def copies(cls, sources: Iterable[int]) -> Matches:
        """Each target id a copy of one source id."""
        means = [{index: 1.0} for index in sources]
        return cls.of(["exact"] * len(means), means)

    def sources_of(self, target: int) -> list[int]:
        """The source ids of one target id."""
        ids: list[int] = self.sources[self.offsets[target] : self.offsets[target + 1]].tolist()
        return ids


def match(
    source: Tokens,
    target: Tokens,
    dictionary: Dictionary | None = None,
    *,
    fallback: Fallback = "random",
    translations: Translations = "mean",
) -> Matches:
    """Match every token of the target; ids that no token has get the fallback's last resort."""
    lookup = Lookup(source)
    settled = _same_roles(source, target)
    unmatched: dict[int, Surface] = {}
    for index, token in target.by_id:
        if index in target.special:
            continue
        spelled = target.surface(token)
        hit = lookup.token(token, spelled)
        if hit is None:
            unmatched[index] = spelled
        else:
            settled[index] = hit.kind, {hit.id: 1.0}
    if dictionary is not None:
        for index, mean in _translate(unmatched, dictionary, lookup, source, translations):
            settled[index] = "dictionary", mean
            del unmatched[index]
    if fallback == "pieces":
        split = source.pieces(list(unmatched.values()))
        for index, ids in zip(unmatched, split, strict=True):
            if ids:
                settled[index] = "pieces", _mean([{piece: 1.0} for piece in ids])
    last: tuple[str, Mean] = ("zero" if fallback == "zero" else "random", {})
    rows = [settled.get(index, last) for index in range(target.vocabulary.size)]
    return Matches.of([kind for kind, _ in rows], [mean for _, mean in rows])


def _same_roles(source: Tokens, target: Tokens) -> dict[int, tuple[str, Mean]]:
    """The target's special tokens that the source has too, by role or else by name."""
    roles, names = target.roles(), dict(target.by_id)
    found: dict[int, tuple[str, Mean]] = {}
    for index in target.special:
        candidates = [source.with_role(role) for role in roles.get(index, ())]
        candidates.append(source.ids.get(names[index]))
        match_of = next((other for other in candidates if other is not None), None)
        if match_of is not None:
            found[index] = "special", {match_of: 1.0}
    return found


def _translate(
    tokens: dict[int, Surface],
    dictionary: Dictionary,
    lookup: Lookup,
    source: Tokens,
    translations: Translations,
) -> list[tuple[int, Mean]]:
    """The tokens that are words of the dictionary with a translation that the source can write."""
    wanted = {
        index: words
        for index, spelled in tokens.items()
        # in scripts without spaces a word's first piece carries no mark
        if spelled.starts or NO_SPACES.match(spelled.text)
        if (words := dictionary.translations(spelled.text))
    }
    means: dict[str, Mean] = {}
    for word in dict.fromkeys(word for words in wanted.values() for word in words):
        hit = lookup.spelling(Surface(word, starts=True))
        means[word] = {} if hit is None else {hit.id: 1.0}
    split = [word for word, mean in means.items() if not mean]
    pieces = source.pieces([Surface(word, starts=True) for word in split])
    for word, ids in zip(split, pieces, strict=True):
        means[word] = _mean([{piece: 1.0} for piece in ids])
    found = []
    for index, words in wanted.items():
        usable = [means[word] for word in words if means[word]]
        if usable:
            found.append((index, _mean(usable if translations == "mean" else usable[:1])))
    return found


def _mean(means: Sequence[Mean]) -> Mean:
    """The mean of means; a source id that is in several of them has the sum of its shares."""
    total: Mean = {}
    for mean in means:
        for index, weight in mean.items():
            total[index] = total.get(index, 0.0) + weight / len(means)
    return total
