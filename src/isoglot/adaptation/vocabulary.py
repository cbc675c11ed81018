"""Whether the vocabulary should grow, by how many words, and how many tokens training then reads.

A language whose words are split into many more tokens than those of the best-covered language has
shorter texts in a row, slower training and less to learn from each token. Words are added that
occur often enough for their new vectors to be learned; those that save most tokens first
(`isoglot.models.transplant.used_tokens`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from isoglot.adaptation.choices import Decision, choose_cleaning
from isoglot.adaptation.heldout import LANGUAGE_CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.adaptation.findings import DataFacts, Findings, LanguageFacts
    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.models.transplant.used_tokens import WordSaving

MAX_RATIO = 1.6
"""Tokens per word of a language, as a multiple of the best-covered language's, before it grows."""
_FITTING = (1.25, 1.5)
"""Tokens per word of a vocabulary that fits its language: the best-covered one counts as at least,
and at most, so many."""
MAX_UNKNOWN = 0.005
"""Share of unknown tokens of a language before the vocabulary grows."""
_MIN_COUNT = 50
"""Occurrences in the data from which on the vector of a new word is learned."""
_MIN_WORDS = 50
"""Fewer words are not worth another vocabulary."""
_MAX_WORDS = 20_000
_LARGE = 100_000
"""Tokens of a vocabulary of many languages."""
_MAX_GROWTH = 0.25
"""Most words to add, as a share of the vocabulary."""


class Growth(NamedTuple):
    """Words to add, and the languages that they are chosen from."""

    words: int
    languages: tuple[str, ...]
    decision: Decision
    remaining: Mapping[str, float] = MappingProxyType({})
    """Tokens of a language after growing, as a share of those before; 1 where it is missing."""


def trained_data(findings: Findings, growth: Growth) -> Findings:
    """The findings with the tokens of one pass of training.

    Tokens are those of the grown vocabulary. Duplicates, held-out lines and, where they are
    dropped, lines of text in another language are not trained on.
    """
    languages = findings.languages
    confidence, _ = choose_cleaning(findings, LANGUAGE_CONFIDENCE)

    def remaining(codes: Sequence[str]) -> float:
        # a side of a pair has as many words as the other, but not as many tokens
        before = {code: languages[code].tokens_per_word for code in codes if code in languages}
        after = sum(growth.remaining.get(code, 1.0) * number for code, number in before.items())
        return after / (sum(before.values()) or 1.0) if before else 1.0

    def trained(code: str, data: DataFacts) -> DataFacts:
        kept = 1 - data.duplicate_share - data.heldout / max(1, data.lines)
        # of a pair, the lines of other texts do not say how many are in another language
        if confidence is not None and code in languages:
            kept *= 1 - languages[code].other_share
        return replace(
            data, tokens=round(data.tokens * max(0.0, kept) * remaining(code.split("-")))
        )

    return replace(
        findings,
        text={code: trained(code, data) for code, data in findings.text.items()},
        pairs={code: trained(code, data) for code, data in findings.pairs.items()},
    )


def choose_growth(findings: Findings, config: AdaptConfig, folder: AdaptFolder) -> Growth:
    """How many words to add to the vocabulary, from the samples of which languages."""
    grown = _choose(findings, config, folder)
    hint = trimming_hint(findings)
    if hint:
        decision = replace(grown.decision, reason=f"{grown.decision.reason}; {hint}")
        grown = grown._replace(decision=decision)
    if not config.dictionaries:
        return grown
    used = "new words begin at the vectors of their translations in the dictionary"
    unused = "the dictionary is not used, as it serves new words alone (--vocabulary NUMBER)"
    decision = grown.decision
    reason = f"{decision.reason}; {used if grown.words else unused}"
    return grown._replace(decision=replace(decision, reason=reason))


def trimming_hint(findings: Findings) -> str:
    """That a smaller vocabulary saves time and memory, where they are short; empty: it does not."""
    encoder = findings.encoder
    words = encoder.num_parameters - encoder.num_body_parameters
    large = encoder.vocabulary_size >= _LARGE and words > encoder.num_parameters / 2
    if findings.machine.gpus or not large:
        return ""
    return (
        f"{words / 1e6:,.0f}M of the {encoder.num_parameters / 1e6:,.0f}M weights are word "
        "embeddings: on a CPU, an encoder for these languages alone takes less time and memory if "
        "`isoglot vocabulary trim` keeps the tokens of your text"
    )


def _choose(findings: Findings, config: AdaptConfig, folder: AdaptFolder) -> Growth:
    spaced = {code: one for code, one in findings.languages.items() if one.spaced}
    limit = split_limit(list(spaced.values()))
    split = [code for code, one in spaced.items() if is_badly_split(one, limit)]
    measured = ", ".join(
        f"{code} {one.tokens_per_word:.2f}" for code, one in findings.languages.items()
    )
    within = f"tokens per word: {measured}; limit {limit:.2f}, unknown {100 * MAX_UNKNOWN:.1f} %"
    if config.vocabulary == "keep":
        return _keeps("asked for; " + within)
    if isinstance(config.vocabulary, int):
        chosen = split or list(spaced)
        if not chosen:
            return _keeps("words are written without spaces, so none can be added; " + within)
        choice = f"{config.vocabulary:,} words of {', '.join(chosen)}"
        remaining = _savings(findings, chosen, folder).remaining(findings, config.vocabulary)
        decision = _decision(choice, f"asked for; {within}")
        return Growth(config.vocabulary, tuple(chosen), decision, remaining)
    if not split:
        return _keeps(within)
    return _grows(findings, split, folder, within)


def split_limit(spaced: Sequence[LanguageFacts]) -> float:
    """Tokens per word above which a language is badly covered."""
    low, high = _FITTING
    best = min((one.tokens_per_word for one in spaced), default=low)
    return MAX_RATIO * min(high, max(low, best))


def is_badly_split(facts: LanguageFacts, limit: float) -> bool:
    """Whether a language has more tokens per word, or unknown tokens, than it should."""
    return facts.tokens_per_word > limit or facts.unknown_share > MAX_UNKNOWN


class _Savings(NamedTuple):
    """What adding words would save in the samples of some languages."""

    by_language: dict[str, list[WordSaving]]
    characters: dict[str, int]
    """Of a language's sample."""

    def words(self) -> list[WordSaving]:
        """Words of all samples; those that save most tokens first."""
        merged: dict[str, WordSaving] = {}
        for one in chain.from_iterable(self.by_language.values()):
            known = merged.get(one.word, replace(one, count=0, saved=0))
            merged[one.word] = replace(
                one, count=known.count + one.count, saved=known.saved + one.saved
            )
        return sorted(merged.values(), key=lambda one: -one.saved)

    def remaining(self, findings: Findings, number: int) -> dict[str, float]:
        """The share of each language's tokens that is left when the best words are added."""
        added = {one.word for one in self.words()[:number]}
        left = {}
        for code, found in self.by_language.items():
            data = findings.text[code]
            saved = sum(one.saved for one in found if one.word in added)
            sampled = data.tokens * self.characters[code] / max(1, data.characters)
            left[code] = max(0.0, 1 - saved / max(1.0, sampled))
        return left


def _savings(findings: Findings, languages: Sequence[str], folder: AdaptFolder) -> _Savings:
    from isoglot.models.transplant.tokens import TokenizerTokens
    from isoglot.models.transplant.used_tokens import word_savings

    tokens = TokenizerTokens.open(Path(findings.encoder.folder))
    files = {code: folder.sample / f"{code}.txt" for code in languages}
    return _Savings(
        {code: word_savings(tokens, [file]) for code, file in files.items()},
        {code: len(file.read_text("utf-8")) for code, file in files.items()},
    )


def _grows(findings: Findings, split: Sequence[str], folder: AdaptFolder, within: str) -> Growth:
    savings = _savings(findings, split, folder)
    most = min(_MAX_WORDS, int(_MAX_GROWTH * findings.encoder.vocabulary_size))
    characters = sum(findings.text[code].characters for code in split)
    scale = characters / max(1, sum(savings.characters.values()))
    words = num_words(savings.words(), scale, most)
    named = ", ".join(split)
    if words < _MIN_WORDS:
        return _keeps(
            f"only {words:,} split words of {named} occur {_MIN_COUNT} times in the data, too few "
            f"to learn vectors for; {within}"
        )
    remaining = savings.remaining(findings, words)
    before = {code: findings.text[code].tokens for code in split}
    after = sum(remaining[code] * number for code, number in before.items())
    saved = 1 - after / max(1, sum(before.values()))
    return Growth(
        words,
        tuple(split),
        _decision(
            f"{words:,} words of {named}",
            f"{within}; so many split words occur {_MIN_COUNT} times or more, and the best save "
            f"about {100 * saved:.0f} % of the tokens of {named}",
        ),
        remaining,
    )


def num_words(savings: Sequence[WordSaving], scale: float, most: int) -> int:
    """How many of the words occur often enough in the data, `scale` times the samples."""
    return min(most, sum(one.count * scale >= _MIN_COUNT for one in savings))


def _keeps(reason: str) -> Growth:
    return Growth(0, (), _decision("stays as it is", reason))


def _decision(choice: str, reason: str) -> Decision:
    return Decision(topic="vocabulary", choice=choice, reason=reason)
