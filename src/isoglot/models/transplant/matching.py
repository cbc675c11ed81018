"""Match every token of a target tokenizer with tokens of the source (MetaXLM, section 3.2).

Reads two tokenizers and a dictionary; gives `Matches`: for every target id the kind of its match
and a weighted mean of source ids. In this order: a special token by its role; the token of a
translation, or the mean of its subwords; the same token; the same text, normalized; the fallback.

MetaXLM (Chi et al., 2021) first searches the translation in the dictionaries, then the word as it
is, then normalized, and does not define that. Here it is: the same text under the other tokenizer's
word marks, then NFKC, then without case. Beyond the paper, unless `strict`: all of these without
regard to word boundaries, which WordPiece puts around commas and Chinese characters and
SentencePiece does not, and means of subwords for translations that are no token. `order: spelling`
uses dictionaries last; Turkish *at* (horse) is then English *at*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from isoglot.corpus.tokenization.vocabulary import NO_SPACES
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.tokens import SurfaceForm, casefolded, is_byte_token, nfkc
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.tokens import TokenizerTokens

SpellingMatch = Literal["exact", "marker", "unicode", "case", "boundary"]
"""How a token was found by its spelling, the strictest way first."""

MATCH_KINDS = ("special", "dictionary", *get_args(SpellingMatch), "subwords", "random", "zero")
"""Where the embedding of a target token comes from, in the default order."""

Mean = dict[int, float]
"""Source ids and their weights, which add up to 1."""

Match = tuple[str, Mean]
"""The kind of a match, and what the target token becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """For each target id, the source ids of which it becomes the weighted mean.

    Those of target id `t` are `sources[offsets[t] : offsets[t + 1]]`; random and zero ones have
    none.
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


def match_tokens(
    source: TokenizerTokens,
    target: TokenizerTokens,
    dictionary: Dictionary | None = None,
    settings: TransplantConfig | None = None,
    *,
    first_translated: int = 0,
) -> Matches:
    """Match every token of the target; ids without a token are random, or zero.

    Ids below `first_translated` are not looked up in the dictionary: tokens that stay as they are.
    """
    settings = settings or TransplantConfig()
    index = TokenIndex(source, boundary=settings.boundary and not settings.strict)
    matched, names = _match_special(source, target), dict(target.by_id)
    left = {number: target.surface(names[number]) for number in names.keys() - target.special}

    def translated() -> dict[int, Match]:
        words = {number: form for number, form in left.items() if number >= first_translated}
        return _translate(words, dictionary, index, source, settings)

    ways = [translated, lambda: _match_spelling(left, names, index)]
    if settings.order == "spelling":
        ways.reverse()
    if settings.fallback == "subwords":
        ways.append(lambda: _match_subwords(left, source))
    for way in ways:
        found = way()
        matched |= found
        left = {number: form for number, form in left.items() if number not in found}
    last: Match = ("zero" if settings.fallback == "zero" else "random", {})
    rows = [matched.get(number, last) for number in range(target.vocabulary.size)]
    return Matches.of([kind for kind, _ in rows], [mean for _, mean in rows])


class TokenMatch(NamedTuple):
    """A source token, and how it was found."""

    id: int
    kind: SpellingMatch


class TokenIndex:
    """The source's ordinary tokens by surface form; of equal ones, the lowest id."""

    def __init__(self, source: TokenizerTokens, *, boundary: bool = True) -> None:
        """`boundary`: find tokens of equal text of which only one begins a word, too."""
        self._source, self._boundary = source, boundary
        self._exact: dict[SurfaceForm, int] = {}
        self._nfkc: dict[SurfaceForm, int] = {}
        self._casefolded: dict[SurfaceForm, int] = {}
        # bytes last: a character's own token goes before the byte that spells it
        ordinary = [entry for entry in source.by_id if entry[0] not in source.special]
        ordinary.sort(key=lambda entry: is_byte_token(entry[1], source.format))
        for number, token in ordinary:
            form = source.surface(token)
            self._exact.setdefault(form, number)
            self._nfkc.setdefault(form._replace(text=nfkc(form.text)), number)
            self._casefolded.setdefault(form._replace(text=casefolded(form.text)), number)

    def find_token(self, token: str, form: SurfaceForm) -> TokenMatch | None:
        """The source token that is written the same and means the same, else by spelling."""
        number = self._source.ids.get(token)
        ordinary = number is not None and number not in self._source.special
        if number is not None and ordinary and self._source.surface(token) == form:
            return TokenMatch(number, "exact")
        return self.find_spelling(form)

    def find_spelling(self, form: SurfaceForm) -> TokenMatch | None:
        """The source token with the most similar spelling."""
        found = self._find_form(form)
        if found is None and self._boundary:
            other = self._find_form(SurfaceForm(form.text, not form.starts_word))
            found = None if other is None else TokenMatch(other.id, "boundary")
        return found

    def _find_form(self, form: SurfaceForm) -> TokenMatch | None:
        if (number := self._exact.get(form)) is not None:
            return TokenMatch(number, "marker")
        if (number := self._nfkc.get(form._replace(text=nfkc(form.text)))) is not None:
            return TokenMatch(number, "unicode")
        if (number := self._casefolded.get(form._replace(text=casefolded(form.text)))) is not None:
            return TokenMatch(number, "case")
        return None


def _match_special(source: TokenizerTokens, target: TokenizerTokens) -> dict[int, Match]:
    """The target's special tokens that the source has too, by role or else by name."""
    roles, names = target.roles(), dict(target.by_id)
    found: dict[int, Match] = {}
    for number in target.special:
        candidates = [source.with_role(role) for role in roles.get(number, ())]
        candidates.append(source.ids.get(names[number]))
        first = next((other for other in candidates if other is not None), None)
        if first is not None:
            found[number] = "special", {first: 1.0}
    return found


def _match_spelling(
    tokens: dict[int, SurfaceForm], names: dict[int, str], index: TokenIndex
) -> dict[int, Match]:
    """The tokens that the source has, in whatever spelling."""
    found = {number: index.find_token(names[number], form) for number, form in tokens.items()}
    return {number: (one.kind, {one.id: 1.0}) for number, one in found.items() if one is not None}


def _match_subwords(tokens: dict[int, SurfaceForm], source: TokenizerTokens) -> dict[int, Match]:
    """The tokens that the source can write, as means of its subwords."""
    split = zip(tokens, source.subwords(list(tokens.values())), strict=True)
    return {
        number: ("subwords", _mean([{one: 1.0} for one in ids])) for number, ids in split if ids
    }


def _translate(
    tokens: dict[int, SurfaceForm],
    dictionary: Dictionary | None,
    index: TokenIndex,
    source: TokenizerTokens,
    settings: TransplantConfig,
) -> dict[int, Match]:
    """The tokens that are words of the dictionary with a translation that the source can write."""
    if dictionary is None:
        return {}
    wanted = {
        number: words
        for number, form in tokens.items()
        # in scripts without spaces the first token of a word has no mark
        if form.starts_word or NO_SPACES.match(form.text)
        if (words := dictionary.translations(form.text))
    }
    means: dict[str, Mean] = {}
    for word in dict.fromkeys(word for words in wanted.values() for word in words):
        found = index.find_spelling(SurfaceForm(word, starts_word=True))
        means[word] = {} if found is None else {found.id: 1.0}
    means_of_subwords = settings.translation_subwords and not settings.strict
    split = [word for word, mean in means.items() if not mean] if means_of_subwords else []
    subwords = source.subwords([SurfaceForm(word, starts_word=True) for word in split])
    for word, ids in zip(split, subwords, strict=True):
        means[word] = _mean([{one: 1.0} for one in ids])
    translated: dict[int, Match] = {}
    for number, words in wanted.items():
        usable = [means[word] for word in words if means[word]]
        if usable:
            chosen = usable if settings.translations == "mean" else usable[:1]
            translated[number] = "dictionary", _mean(chosen)
    return translated


def _mean(means: Sequence[Mean]) -> Mean:
    """The mean of means; a source id in several of them has the sum of its weights."""
    total: Mean = {}
    for mean in means:
        for number, weight in mean.items():
            total[number] = total.get(number, 0.0) + weight / len(means)
    return total
