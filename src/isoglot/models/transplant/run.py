"""Transplant: a model of the source's architecture and body with the target's vocabulary.

    source folder + target tokenizer + dictionaries  -->  model folder + Report

MetaXLM (Chi et al. 2021), section 3.2: a monolingual model as the start of a cross-lingual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.models.transplant.folders import open_source, write_model
from isoglot.models.transplant.renewed import dictionary_of, renewed
from isoglot.models.transplant.settings import TransplantConfig
from isoglot.models.transplant.tokens import Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.models.transplant.report import Report

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
    source: Path, tokenizer: Path, out: Path, settings: TransplantConfig | None = None
) -> Report:
    """Give the model of a folder the vocabulary of another tokenizer, and write it.

    Raises:
        IsoglotError: the model, a tokenizer or a dictionary cannot be used; the message says why.
    """
    settings = settings or TransplantConfig()
    target, dictionary = Tokens.open(tokenizer), dictionary_of(settings)
    encoder, tokens = open_source(source)
    new, report = renewed(encoder, tokens, target, dictionary, settings)
    card = _CARD.format(name=out.name, source=source.name, target=tokenizer.name)
    write_model(new, out, source=source, tokenizer_folder=tokenizer, card=card, report=report)
    return report
