"""Trim: a model with the tokens that some text uses, and a tokenizer with the same ids.

    model folder + text files in any languages  -->  smaller model folder + Report

Of a multilingual model most parameters are words, and few of them are of the languages one wants.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.errors import ModelError
from isoglot.models.transplant.fewer_tokens import trimmed, with_needed
from isoglot.models.transplant.folders import open_source, write_model
from isoglot.models.transplant.matching import Matches
from isoglot.models.transplant.report import Report, report_on
from isoglot.models.transplant.settings import TransplantConfig
from isoglot.models.transplant.surgery import with_vocabulary
from isoglot.models.transplant.tokenizer_folder import save_tokenizer
from isoglot.models.transplant.tokens import Tokens
from isoglot.models.transplant.used import token_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CARD = "# {name}\n\nThe model `{source}`, trimmed with Isoglot to {size:,} tokens.\n"


def trim(source: Path, out: Path, *, texts: Sequence[Path], min_count: int = 1) -> Report:
    """Keep the tokens that are at least `min_count` times in the texts; write the model.

    Raises:
        IsoglotError: the model or a text cannot be used; the message says why.
    """
    counts = token_counts(Tokens.open(source), texts)
    return trim_to(source, out, np.flatnonzero(counts >= min_count).tolist())


def trim_to(source: Path, out: Path, wanted: Iterable[int]) -> Report:
    """Keep these ids, and those that the tokenizer cannot miss; write the model."""
    encoder, tokens = open_source(source)
    kept = with_needed(tokens, wanted)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        target = _rebuilt(tokens, kept, folder)
        matches = Matches.copies(kept)
        new = with_vocabulary(encoder, matches, target.vocabulary, TransplantConfig())
        report = report_on(encoder, new, matches, source=tokens, target=target, notes=[])
        card = _CARD.format(name=out.name, source=source.name, size=len(kept))
        write_model(new, out, source=source, tokenizer_folder=folder, card=card, report=report)
    return report


def _rebuilt(tokens: Tokens, kept: list[int], folder: Path) -> Tokens:
    """The tokenizer with the kept ids only, written to a folder and opened from there."""
    from tokenizers import Tokenizer

    content = trimmed(tokens.content, kept)
    save_tokenizer(Tokenizer.from_str(json.dumps(content)), tokens.tokenizer, folder)
    rebuilt = Tokens.open(folder)
    names = dict(tokens.by_id)
    if rebuilt.ids != {names[old]: new for new, old in enumerate(kept)}:
        raise ModelError(
            f"{tokens.folder}: its tokenizer does not keep its ids in the order of its tokens, so "
            "it cannot be trimmed. Save it again with transformers' save_pretrained first."
        )
    return rebuilt
