"""The choices of a plan: objectives and shares, learning rate, rows, steps, cleaning.

Each function gives settings and the `Decision` that says why, with the number that decided. The
objectives are those that did best in our study (README, Evidence): half of the tokens text under
MLM, half translations under in-batch contrast of mean states. Half of the text is read as single
sentences: where MLM saw blocks alone and contrast single sentences, the encoder lost the prediction
of words in single sentences (LOGBOOK, 2026-11-18).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isoglot.batching.language_shares import smoothed_shares
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams.parallel import ParallelStream
from isoglot.batching.streams.text import TextStream
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.adaptation.findings import Findings
    from isoglot.adaptation.request import AdaptConfig
    from isoglot.batching.streams import StreamConfig
    from isoglot.objectives import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One choice of a plan."""

    topic: str
    """What is chosen: objectives, vocabulary, learning rate, ..."""
    choice: str
    reason: str
    """Why, with the number that decided."""


def in_words(tokens: float) -> str:
    """A number of tokens: `13.3M`; below a million, its first two digits: `41,000`."""
    if tokens >= 0.95e6:
        return f"{tokens / 1e6:,.1f}M"
    return f"{float(f'{tokens:.2g}'):,.0f}"


_CONTRAST_SHARE = 0.5
"""Share of the tokens that are translations under contrast, the rest is text under MLM."""
_SENTENCE_SHARE = 0.5
"""Share of the text that is read sentence by sentence, the rest in blocks that fill a row."""
_TEXT = "text (half of it as single sentences)"
MAX_PASSES = 20
"""Most passes over text, or over pairs, that are planned; a small part gets a smaller share, down
to `_MIN_SHARE`."""
_PASSES = ((3e6, 10), (30e6, 5), (300e6, 2))
"""Tokens of all data, and passes over them up to there; one pass over more."""
_ALPHAS = (0.5, 0.3, 0.0)
_MIN_SHARE = 0.05
"""Smallest share of a language's draws of its stream, for which alpha is lowered; of contrast; and
of text among what MLM reads."""


class Mixture(NamedTuple):
    """What is trained on what."""

    streams: dict[str, StreamConfig]
    objectives: dict[str, Objective]
    objectives_decision: Decision
    languages_decision: Decision
    text_tokens: int
    """Tokens of text of all languages; of one without text, those of its sides of pairs."""
    pair_tokens: int
    """Tokens of one pass over the pairs."""
    given_tokens: int
    """Tokens of one pass over the text that is given."""
    sides_tokens: int = 0
    """Tokens of one pass over the pairs whose sides MLM reads."""
    knowledge_share: float = 0.0
    """Share of the tokens that is knowledge."""

    @property
    def passes(self) -> int:
        """Passes over the data, by its size."""
        return num_passes(self.text_tokens + self.pair_tokens)

    @property
    def tokens(self) -> int:
        """Tokens to train on: all passes over text and pairs, and knowledge besides."""
        given = _all_passes(self.text_tokens + self.pair_tokens)
        return round(given / (1 - self.knowledge_share))

    def num_steps(self, batch: BatchConfig) -> int:
        """Steps that train on so many tokens."""
        return max(1, -(-self.tokens // (batch.rows * batch.row_length)))


def choose_mixture(
    findings: Findings, config: AdaptConfig, *, knowledge_share: float = 0.0
) -> Mixture:
    """The objectives on text and pairs, the streams that they read, and the shares of languages.

    They get the tokens that `knowledge_share` leaves.
    """
    rest = 1 - knowledge_share
    text = {code: findings.text[code].tokens for code in config.text}
    pairs = {code: one.tokens for code, one in findings.pairs.items()}
    alone = [code for code in config.languages if code not in config.text]
    read = {code: findings.text[code].tokens for code in config.languages}
    alpha, shares, languages = _choose_alpha(read)
    streams: dict[str, StreamConfig] = {}
    objectives: dict[str, Objective] = {"mlm": MLM()}
    contrast = _contrast_share(sum(read.values()), sum(pairs.values()))
    # both sides of a pair are read, so that a language of pairs alone gets half of their tokens
    from_sides = min(1.0, 2 * sum(shares[code] for code in alone)) if text else 1.0
    from_text = max(_MIN_SHARE, 1 - from_sides) if alone else 1.0
    sides = tuple(pair for pair in pairs if set(alone) & set(pair.split("-")))
    # little text beside many pairs would be learned by heart
    given, pair_tokens = sum(text.values()), sum(pairs.values())
    under_mlm = (1 - contrast) * _all_passes(sum(read.values()) + pair_tokens)
    often = from_text * under_mlm / max(1, given)
    if text and pairs and often > MAX_PASSES:
        from_text = max(_MIN_SHARE, from_text * MAX_PASSES / often)
        from_sides, sides = 1 - from_text, tuple(pairs)
    if text:
        streams |= _text_streams(rest * (1 - contrast) * from_text, alpha)
    if sides:
        streams["sides"] = ParallelStream(
            objectives=("mlm",),
            share=_rounded(rest * (1 - contrast) * from_sides),
            languages=sides,
            alpha=alpha,
        )
    if pairs:
        streams["parallel"] = ParallelStream(
            objectives=("moco",), share=_rounded(rest * contrast), order="shuffled", alpha=alpha
        )
        objectives["moco"] = in_batch_contrast()
    return Mixture(
        streams,
        objectives,
        objectives_decision=_objective_decision(text, pairs, alone, contrast, rest, often),
        languages_decision=languages,
        text_tokens=sum(read.values()),
        pair_tokens=pair_tokens,
        given_tokens=given,
        sides_tokens=sum(pairs[pair] for pair in sides),
        knowledge_share=knowledge_share,
    )


def _text_streams(share: float, alpha: float) -> dict[str, StreamConfig]:
    """Text under MLM: blocks that fill a row, and single sentences."""
    blocks = TextStream(
        objectives=("mlm",),
        share=_rounded(share * (1 - _SENTENCE_SHARE)),
        across_documents=True,
        alpha=alpha,
        alpha_unit="tokens",
    )
    single = replace(
        blocks, unit="sentence", across_documents=False, share=_rounded(share * _SENTENCE_SHARE)
    )
    return {"text": blocks, "sentences": single}


def in_batch_contrast() -> MoCo:
    """Contrast of mean states with the other pairs of the step, both sides trained."""
    return MoCo(
        pooling="mean",
        key_encoder="shared",
        in_batch_negatives=True,
        symmetric=True,
        projection=ProjectionConfig(layers=0, normalize="after"),
        queue=QueueConfig(size=0),
    )


def _contrast_share(text: int, pairs: int) -> float:
    """The share of contrast: half, or less where pairs would be read too often."""
    if not pairs:
        return 0.0
    return max(_MIN_SHARE, min(_CONTRAST_SHARE, MAX_PASSES * pairs / _all_passes(text + pairs)))


def num_passes(tokens: int) -> int:
    """Passes over data of this size."""
    return next((passes for size, passes in _PASSES if tokens < size), 1)


def _all_passes(tokens: int) -> int:
    """Tokens of all passes over data of this size."""
    return num_passes(tokens) * tokens


def _objective_decision(
    text: Mapping[str, int],
    pairs: Mapping[str, int],
    alone: list[str],
    contrast: float,
    rest: float,
    often: float,
) -> Decision:
    """`often`: how many times the text would be read, if MLM read no sides of pairs for it."""
    if not pairs:
        total = sum(text.values())
        return Decision(
            topic="objectives",
            choice=f"MLM on {_TEXT}" + (f", {100 * rest:.0f} % of the tokens" if rest < 1 else ""),
            reason=f"there are {in_words(total)} tokens of text and no translations",
        )
    small = bool(text) and often > MAX_PASSES
    read = [_TEXT] * bool(text) + ["sides of pairs"] * (bool(alone) or small)
    sided = f"; {', '.join(alone)} without text of its own: from pairs" if alone else ""
    if small:
        sided += f"; text would be read {often:,.0f} times, so sides of pairs are read beside it"
    return Decision(
        topic="objectives",
        choice=f"MLM on {' and '.join(read)}, {100 * rest * (1 - contrast):.0f} % of the tokens; "
        f"contrast of the mean states of translations, {100 * rest * contrast:.0f} %",
        reason=f"{in_words(sum(text.values()))} tokens of text, "
        f"{in_words(sum(pairs.values()))} of pairs; in README's evidence half and half finds "
        f"70 % of translations, CAMLM 16 %, MLM 5 %{sided}",
    )


def _choose_alpha(tokens: Mapping[str, int]) -> tuple[float, dict[str, float], Decision]:
    """The sampling exponent, and the share of each language that it gives."""
    counts = np.maximum(1.0, np.array(list(tokens.values()), dtype=np.float64))
    for alpha in _ALPHAS:
        shares = smoothed_shares(counts, alpha)
        if shares.min() >= min(_MIN_SHARE, 1 / len(shares)):
            break
    by_language = dict(zip(tokens, shares.tolist(), strict=True))
    told = ", ".join(f"{code} {100 * share:.0f} %" for code, share in by_language.items())
    size = ", ".join(f"{code} {in_words(number)}" for code, number in tokens.items())
    kept = "" if "en" in tokens else "; languages without text are not rehearsed: --text en=FILE"
    decision = Decision(
        topic="languages",
        choice=told,
        reason=f"tokens: {size}; each gets N^{alpha:g}, so that small languages are learned and "
        f"large ones not lost{kept}",
    )
    return alpha, by_language, decision


_PEAK = 5e-4
_PEAK_WEIGHTS = 10.6e6
"""Weights without word embeddings of the encoders of our study, 6 layers × 384, which were trained
on with a learning rate of 5e-4."""
_RATES = (1e-5, 5e-4)
"""Smaller encoders do not get more than the study's: 1e-3 cost known languages twice as much of
their bits per character, and taught the new language less (LOGBOOK, 2026-11-17)."""


def choose_optimizer(findings: Findings, new_words: int) -> tuple[OptimizerConfig, Decision]:
    """Learning rate by the number of weights, and its schedule."""
    weights = findings.encoder.num_body_parameters
    low, high = _RATES
    rate = float(f"{min(high, max(low, _PEAK * _PEAK_WEIGHTS / weights)):.1e}")
    fresh = new_words > 0 or not findings.encoder.has_lm_head
    warmup = 0.1 if fresh else 0.06
    config = OptimizerConfig(
        learning_rate=rate, betas=(0.9, 0.98), weight_decay=0.01, warmup_ratio=warmup
    )
    new = "new vectors" if new_words else "a new LM head"
    return config, Decision(
        topic="learning rate",
        choice=f"{rate:g}, warm-up over {100 * warmup:.0f} % of the steps, then linear to 0",
        reason=f"{weights / 1e6:,.1f}M weights without word embeddings: {_PEAK:g} × "
        f"{_PEAK_WEIGHTS / 1e6:g}M / weights, from {low:g} to {high:g}"
        f"{f'; longer warm-up for {new}' if fresh else ''}",
    )


_ROW_LENGTH = 256
_LONG_ROW = 512
_ROWS_GPU, _ROWS_CPU = 256, 32
_MIN_ROWS = 8
_MIN_STEPS = 300
"""Steps that the data should give: rows are halved until it does."""


def choose_rows(
    findings: Findings, tokens: int, *, fitting: int | None = None
) -> tuple[BatchConfig, Decision]:
    """The shape of a step: its rows and their length.

    `fitting` rows fit the memory where all of a step are needed at a time; none: not tried yet.
    """
    longest = max(one.longest_tokens for one in (*findings.text.values(), *findings.pairs.values()))
    positions = findings.encoder.max_positions
    wanted = _LONG_ROW if longest + 4 > _ROW_LENGTH else _ROW_LENGTH
    length = min(wanted, positions - positions % 8)
    most = _ROWS_GPU if findings.machine.gpus else _ROWS_CPU
    limit = f"{most} rows at most on a {'GPU' if findings.machine.gpus else 'CPU'}"
    if fitting is not None:
        most, limit = fitting, f"{fitting} rows at most fit the memory"
    rows = most
    while rows > _MIN_ROWS and tokens < _MIN_STEPS * rows * length:
        rows //= 2
    return BatchConfig(row_length=length, rows=rows, micro_rows="auto"), Decision(
        topic="rows",
        choice=f"{rows} rows of {length} tokens a step",
        reason=f"99 % of the sentences have at most {longest:,} tokens, the encoder "
        f"{positions:,} positions; {in_words(tokens)} tokens, all passes over the data together, "
        f"fill {-(-tokens // (rows * length)):,} steps; {limit}, fewer for less than {_MIN_STEPS} "
        "steps",
    )


_FEW_OTHERS, _MANY_OTHERS = 0.005, 0.5


def choose_cleaning(findings: Findings, confidence: float) -> tuple[float | None, Decision]:
    """Whether lines that look like another language are dropped."""
    shares = {code: one.other_share for code, one in findings.languages.items()}
    told = ", ".join(f"{code} {100 * share:.1f} %" for code, share in shares.items())
    wrong = [code for code, share in shares.items() if share > _MANY_OTHERS]
    if wrong:
        facts = findings.languages[wrong[0]]
        return None, Decision(
            topic="WARNING",
            choice="no line is dropped for its language",
            reason=f"{100 * facts.other_share:.0f} % of the lines of {wrong[0]} look like "
            f"{facts.other_language}: if the code is wrong, give the right one",
        )
    used = max(shares.values()) > _FEW_OTHERS
    return confidence if used else None, Decision(
        topic="cleaning",
        choice="lines in another language, duplicates and test lines are dropped"
        if used
        else "duplicates and test lines are dropped",
        reason=f"lines that look like another language: {told}; limit {100 * _FEW_OTHERS:.1f} %",
    )


def _rounded(share: float) -> float:
    return round(max(share, 0.001), 3)
