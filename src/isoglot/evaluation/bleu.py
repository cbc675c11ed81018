"""BLEU of translations, as sacrebleu and as multi-bleu.perl compute it.

sacrebleu tokenizes by itself, and its signature says how, so that numbers compare between papers.
multi-bleu.perl counts words between spaces without smoothing: both sides are tokenized by the rules
of Moses (sacremoses) first, as in XLM, MASS and MLM-GC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.languages import plain_code
from isoglot.results import Score

if TYPE_CHECKING:
    from collections.abc import Sequence

MOSES = "words by sacremoses, no smoothing"
"""How tokenized BLEU is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bleu:
    """BLEU of translations, from 0 to 100."""

    sacrebleu: float
    signature: str
    """How sacrebleu tokenized and smoothed, and its version."""
    multi_bleu: float
    """Tokenized BLEU, as multi-bleu.perl computes it."""
    num_empty: int
    """Empty translations."""
    count: int


def bleu(translations: Sequence[str], references: Sequence[str], language: str) -> Bleu:
    """Score translations against one reference each, both in the language of a code."""
    check_number(translations, references)
    metric = _sacrebleu(tokenize="zh" if plain_code(language) == "zh" else "13a")
    score = metric.corpus_score(list(translations), [list(references)])
    return Bleu(
        sacrebleu=score.score,
        signature=str(metric.get_signature()),
        multi_bleu=multi_bleu(_moses(translations, language), _moses(references, language)),
        num_empty=sum(not translation.strip() for translation in translations),
        count=len(references),
    )


def check_number(sentences: Sequence[str], references: Sequence[str]) -> None:
    """Raise unless there are sentences and one reference for each."""
    if not sentences and not references:
        raise IsoglotError("BLEU needs at least one sentence.")
    if len(sentences) != len(references):
        raise IsoglotError(
            f"there are {len(sentences)} sentences and {len(references)} references: BLEU needs a "
            "reference for each sentence."
        )


def check_ready(language: str) -> None:
    """Raise if a package is missing that BLEU of a language needs."""
    _sacrebleu()
    _moses([], language)


def as_scores(found: Bleu, languages: str, *, of: str) -> tuple[Score, ...]:
    """BLEU of a pair of languages (`de-en`) as scores of a results file, divided by 100.

    Their scenario is `of`, the test set and the settings of generation, and how BLEU was computed.
    """
    values = {"bleu": (found.sacrebleu, found.signature), "multi-bleu": (found.multi_bleu, MOSES)}
    return tuple(
        Score(
            task="translation",
            version=1,
            language=languages,
            metric=name,
            value=value / 100,
            count=found.count,
            scenario=f"{of}; {how}",
        )
        for name, (value, how) in values.items()
    )


def multi_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of words between spaces, without smoothing: 0 without a correct 4-gram."""
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
