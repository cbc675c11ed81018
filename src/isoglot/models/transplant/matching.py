"""Match every token of a target tokenizer with tokens of the source (MetaXLM, section 3.2).

Reads two tokenizers and a dictionary; gives `Matches`: for every target id the kind of its match
and a weighted mean of source ids. In this order: a special token by its role; the same token; the
same text, normalized; the token of a translation, or the mean of its subwords; the fallback.

MetaXLM (Chi et al., 2021) looks up a word as it is, then normalized, and does not define that. Here
it is: the same text under the other tokenizer's word marks, then NFKC, then without case, then all
of these without regard to word boundaries, which WordPiece puts around commas and Chinese
characters and SentencePiece does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from isoglot.corpus.tokenization.vocabulary import NO_SPACES
from isoglot.models.transplant.tokens import SurfaceForm, casefolded, is_byte_token, nfkc
from isoglot.types import FloatArray, LongArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.models.transplant.config import Fallback, Translations
    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.tokens import TokenizerTokens

SpellingMatch = Literal["exact", "marker", "unicode", "case", "boundary"]
"""How a token was found by its spelling, the strictest way first."""

MATCH_KINDS = ("special", *get_args(SpellingMatch), "dictionary", "subwords", "random", "zero")
"""Where the embedding of a target token comes from, in the order in which it is tried."""

Mean = dict[int, float]
"""Source ids and their weights, which add up to 1."""


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
    *,
    fallback: Fallback = "random",
    translations: Translations = "mean",
) -> Matches:
    """Match every token of the target; ids without a token are random, or zero."""
    index = TokenIndex(source)
    matched = _match_special(source, target)
    unmatched: dict[int, SurfaceForm] = {}
    for number, token in target.by_id:
        if number in target.special:
            continue
        form = target.surface(token)
        found = index.find_token(token, form)
        if found is None:
            unmatched[number] = form
        else:
            matched[number] = found.kind, {found.id: 1.0}
    if dictionary is not None:
        for number, mean in _translate(unmatched, dictionary, index, source, translations):
            matched[number] = "dictionary", mean
            del unmatched[number]
    if fallback == "subwords":
        split = source.subwords(list(unmatched.values()))
        for number, ids in zip(unmatched, split, strict=True):
            if ids:
                matched[number] = "subwords", _mean([{one: 1.0} for one in ids])
    last: tuple[str, Mean] = ("zero" if fallback == "zero" else "random", {})
    rows = [matched.get(number, last) for number in range(target.vocabulary.size)]
    return Matches.of([kind for kind, _ in rows], [mean for _, mean in rows])


class TokenMatch(NamedTuple):
    """A source token, and how it was found."""

    id: int
    kind: SpellingMatch


class TokenIndex:
    """The source's ordinary tokens by surface form; of equal ones, the lowest id."""

    def __init__(self, source: TokenizerTokens) -> None:
        self._source = source
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
        if found is None:
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


def _match_special(source: TokenizerTokens, target: TokenizerTokens) -> dict[int, tuple[str, Mean]]:
    """The target's special tokens that the source has too, by role or else by name."""
    roles, names = target.roles(), dict(target.by_id)
    found: dict[int, tuple[str, Mean]] = {}
    for number in target.special:
        candidates = [source.with_role(role) for role in roles.get(number, ())]
        candidates.append(source.ids.get(names[number]))
        first = next((other for other in candidates if other is not None), None)
        if first is not None:
            found[number] = "special", {first: 1.0}
    return found


def _translate(
    tokens: dict[int, SurfaceForm],
    dictionary: Dictionary,
    index: TokenIndex,
    source: TokenizerTokens,
    translations: Translations,
) -> list[tuple[int, Mean]]:
    """The tokens that are words of the dictionary with a translation that the source can write."""
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
    split = [word for word, mean in means.items() if not mean]
    subwords = source.subwords([SurfaceForm(word, starts_word=True) for word in split])
    for word, ids in zip(split, subwords, strict=True):
        means[word] = _mean([{one: 1.0} for one in ids])
    translated = []
    for number, words in wanted.items():
        usable = [means[word] for word in words if means[word]]
        if usable:
            translated.append((number, _mean(usable if translations == "mean" else usable[:1])))
    return translated


def _mean(means: Sequence[Mean]) -> Mean:
    """The mean of means; a source id in several of them has the sum of its weights."""
    total: Mean = {}
    for mean in means:
        for number, weight in mean.items():
            total[number] = total.get(number, 0.0) + weight / len(means)
    return total
