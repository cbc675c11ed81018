"""A model with the tokens of another tokenizer: what transplanting and growing share.

source encoder, its tokens + target tokens (+ dictionaries)  -->  new encoder, Report
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.models.transplant.dictionary import files_of, read_dictionaries
from isoglot.models.transplant.matching import Matches, match
from isoglot.models.transplant.report import Report, report_on
from isoglot.models.transplant.surgery import with_vocabulary, word_on_positions

if TYPE_CHECKING:
    from isoglot.models.encoder import Encoder
    from isoglot.models.transplant.dictionary import Dictionary
    from isoglot.models.transplant.settings import TransplantConfig
    from isoglot.models.transplant.tokens import Tokens


def dictionary_of(settings: TransplantConfig) -> Dictionary | None:
    """The dictionaries that the settings name, as one; none where they name none.

    Raises:
        IsoglotError: one is missing or is no dictionary.
    """
    if not settings.dictionaries:
        return None
    return read_dictionaries(
        files_of(settings.dictionaries),
        source_column=settings.source_column,
        max_broken=settings.max_broken,
    )


def renewed(
    encoder: Encoder,
    source: Tokens,
    target: Tokens,
    dictionary: Dictionary | None,
    settings: TransplantConfig,
) -> tuple[Encoder, Report]:
    """The encoder with a vector for each of the target's tokens, and where they come from."""
    matches = _matches(source, target, dictionary, settings)
    new = with_vocabulary(encoder, matches, target.vocabulary, settings)
    report = report_on(
        encoder,
        new,
        matches,
        source=source,
        target=target,
        notes=[word_on_positions(encoder, new)],
        dictionary=dictionary,
    )
    return new, report


def _matches(
    source: Tokens, target: Tokens, dictionary: Dictionary | None, settings: TransplantConfig
) -> Matches:
    """How the target's tokens are matched, unless embeddings are to begin at random."""
    if settings.initialise in ("body", "none"):
        size = target.vocabulary.size
        return Matches.of(["random"] * size, [{}] * size)
    return match(
        source,
        target,
        dictionary,
        fallback=settings.fallback,
        translations=settings.translations,
    )
