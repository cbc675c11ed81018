"""Transplant: a model of the source's architecture and body with the target's vocabulary.

    source folder + target tokenizer + dictionaries  -->  model folder + Report

MetaXLM (Chi et al. 2021), section 3.2: a monolingual model as the start of a cross-lingual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.models.transplant.dictionary import read_dictionaries
from isoglot.models.transplant.folders import open_source, write_model
from isoglot.models.transplant.matching import Matches, match
from isoglot.models.transplant.report import Report, report_on
from isoglot.models.transplant.settings import TransplantConfig
from isoglot.models.transplant.surgery import with_vocabulary, word_on_positions
from isoglot.models.transplant.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.models.transplant.dictionary import Dictionary

_CARD = """\
---
library_name: transformers
pipeline_tag: fill-mask
tags:
- isoglot
- cross-lingual
---

# {name}

The model `{source}` with the vocabulary of `{target}`, transplanted with Isoglot. Its new words
have not been trained yet; transplant.json says where each kind of them comes from.
"""


def transplant(
    source: Path,
    tokenizer: Path,
    out: Path,
    settings: TransplantConfig | None = None,
    *,
    dictionaries: Sequence[Path] = (),
) -> Report:
    """Give the model of a folder the vocabulary of another tokenizer, and write it.

    Raises:
        IsoglotError: the model, a tokenizer or a dictionary cannot be used; the message says why.
    """
    settings = settings or TransplantConfig()
    target = Tokens.open(tokenizer)
    dictionary = None
    if dictionaries:
        dictionary = read_dictionaries(
            dictionaries,
            source_column=settings.source_column,
            max_broken=settings.max_broken,
        )
    encoder, tokens = open_source(source)
    matches = _matches(tokens, target, dictionary, settings)
    new = with_vocabulary(encoder, matches, target.vocabulary, settings)
    report = report_on(
        encoder,
        new,
        matches,
        source=tokens,
        target=target,
        notes=[word_on_positions(encoder, new)],
        dictionary=dictionary,
    )
    card = _CARD.format(name=out.name, source=source.name, target=tokenizer.name)
    write_model(new, out, source=source, tokenizer_folder=tokenizer, card=card, report=report)
    return report


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
