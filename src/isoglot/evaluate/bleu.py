"""BLEU of translations, in two ways: sacrebleu's own, and what multi-bleu.perl computes.

sacrebleu tokenizes by itself, and its signature says how, so that its numbers compare between
papers. multi-bleu.perl counts words as they are given, between spaces, and smooths nothing: both
sides are tokenized by Moses's rules (sacremoses) first, as XLM, MASS and MLM-GC do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.corpus.languages import plain_code
from isoglot.errors import IsoglotError
from isoglot.evaluate.commit import commit
from isoglot.results import Score

if TYPE_CHECKING:
    from collections.abc import Sequence

MOSES = "words by sacremoses, no smoothing"
"""How tokenized BLEU is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bleu:
    """The score of some translations, from 0 to 100."""

    sacrebleu: float
    signature: str
    """How sacrebleu tokenized and smoothed, and its version."""
    multi_bleu: float
    """Tokenized BLEU, as multi-bleu.perl computes it."""
    empty: int
    """Translations without a word."""
    count: int


def bleu(translations: Sequence[str], references: Sequence[str], language: str) -> Bleu:
    """Score translations against one reference each.

    Args:
        translations: one sentence each.
        references: what they should be.
        language: code of the language of both, for Moses's rules.
    """
    check_number(translations, references)
    metric = _sacrebleu(tokenize="zh" if plain_code(language) == "zh" else "13a")
    score = metric.corpus_score(list(translations), [list(references)])
    return Bleu(
        sacrebleu=score.score,
        signature=str(metric.get_signature()),
        multi_bleu=multi_bleu(_moses(translations, language), _moses(references, language)),
        empty=sum(not translation.strip() for translation in translations),
        count=len(references),
    )


def check_number(sentences: Sequence[str], references: Sequence[str]) -> None:
    """Raises unless there is something to score, and a reference for each sentence."""
    if not sentences and not references:
        raise IsoglotError("there are no sentences, and so no BLEU.")
    if len(sentences) != len(references):
        raise IsoglotError(
            f"there are {len(sentences)} sentences and {len(references)} references: BLEU needs a "
            "reference for each sentence."
        )


def check_ready(language: str) -> None:
    """Raises if a package is missing that scoring texts of a language needs."""
    _sacrebleu()
    _moses([], language)


def as_scores(found: Bleu, languages: str, *, of: str) -> tuple[Score, ...]:
    """The scores as a results file keeps them: shares, each with how it was computed.

    Args:
        found: the score.
        languages: codes of the two languages, `de-en`.
        of: what was scored: the test, and how its translations were written. Scores of one test
            are kept beside those of another.
    """
    said = {"bleu": (found.sacrebleu, found.signature), "multi-bleu": (found.multi_bleu, MOSES)}
    return tuple(
        Score(
            task="translation",
            version=1,
            language=languages,
            metric=name,
            value=value / 100,
            count=found.count,
            scenario=f"{of}; {how}",
            commit=commit(),
        )
        for name, (value, how) in said.items()
    )


def multi_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of words between spaces, without smoothing: 0 where no four words in a row are right."""
    metric = _sacrebleu(tokenize="none", smooth_method="none", force=True)
    return float(metric.corpus_score(list(translations), [list(references)]).score)


def _sacrebleu(**settings: Any) -> Any:
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise IsoglotError("BLEU needs sacrebleu: pip install 'isoglot[translate]'") from None
    return BLEU(**settings)


def _moses(lines: Sequence[str], language: str) -> list[str]:
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise IsoglotError(
            "tokenized BLEU needs sacremoses: pip install 'isoglot[translate]'"
        ) from None
    tokenizer = MosesTokenizer(lang=plain_code(language))
    return [tokenizer.tokenize(line, return_str=True, escape=False) for line in lines]
