"""What a user should know of a prepared corpus: losses with their reasons, words split too finely.

Sentences for `isoglot prepare`, `isoglot show corpus` and the corpus's page, each with the setting
to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.corpus.cleaning.cleaner import DROP_REASONS
from isoglot.report.corpus_stats import corpus_parts

if TYPE_CHECKING:
    from isoglot.corpus import Manifest
    from isoglot.report.corpus_stats import CorpusPart

MAX_LOSS = 0.5
"""Share of dropped records above which a language gets a note."""
MAX_TOKENS_PER_WORD = 2.5
"""Tokens per word above which a language gets a note."""
_NO_LOSS = ("blank", "header")
"""Reasons that no text is lost for."""


def corpus_notes(manifest: Manifest) -> list[str]:
    """Sentences on languages that lose most of their records, and on words split too finely."""
    losses = [note for part in corpus_parts(manifest) if (note := _loss(part)) is not None]
    return losses + _fine_splits(manifest)


def _loss(part: CorpusPart) -> str | None:
    """A sentence on a language of a source that loses most of its records, with the main reason."""
    lost = {reason: number for reason, number in part.dropped.items() if reason not in _NO_LOSS}
    read = part.read - sum(part.dropped.get(reason, 0) for reason in _NO_LOSS)
    total = sum(lost.values())
    if total <= MAX_LOSS * read:
        return None
    reason = max(lost, key=lambda one: lost[one])
    meaning = DROP_REASONS.get(reason, "")
    if reason == "encoding":
        meaning += " If it is Latin-1: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW."
    return (
        f"{part.source}/{part.language}: {total:,} of {read:,} records are dropped "
        f"({100 * total / read:.0f} %), {lost[reason]:,} of them as {reason!r}. {meaning} "
        "--dropped FOLDER writes every dropped line with its reason."
    )


def _fine_splits(manifest: Manifest) -> list[str]:
    """A sentence on languages whose words are split into many tokens, and what to do about it."""
    split = {
        language: stats.tokens_per_word
        for language, stats in manifest.tokenizer.statistics.items()
        if stats.tokens_per_word > MAX_TOKENS_PER_WORD
    }
    if not split:
        return []
    settings = manifest.settings.get("tokenizer", {})
    if folder := settings.get("folder"):
        advice = (
            f"Add words of the language to the model first: isoglot vocabulary grow {folder} "
            "--text FILE --out NEW; then prepare with tokenizer.folder=NEW."
        )
    else:
        advice = (
            f"Raise tokenizer.vocab_size ({settings.get('vocab_size')}), or lower tokenizer.alpha "
            f"({settings.get('alpha')}), which gives small languages more of it."
        )
    told = ", ".join(f"{language} {tokens:.2f}" for language, tokens in sorted(split.items()))
    return [f"More than {MAX_TOKENS_PER_WORD:g} tokens per word: {told}. {advice}"]
