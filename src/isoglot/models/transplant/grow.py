"""Grow: a model with more tokens, the old ones untouched.

    model folder + words (+ dictionaries)  -->  larger model folder + Report

A new token is a whole word. Its vector comes from a match, a translation or the mean of the pieces
that it used to be split into. The tokenizer splits text without new words as before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.errors import ModelError, require
from isoglot.models.transplant.folders import open_source, write_model
from isoglot.models.transplant.renewed import dictionary_of, renewed
from isoglot.models.transplant.settings import TransplantConfig
from isoglot.models.transplant.tokenizer_folder import save_tokenizer
from isoglot.models.transplant.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.transplant.report import Report

_CARD = "# {name}\n\nThe model `{source}` with {number:,} more words, added with Isoglot.\n"


def grow(
    source: Path,
    out: Path,
    words: Sequence[str],
    settings: TransplantConfig | None = None,
) -> Report:
    """Add words to the model of a folder, and write it.

    Raises:
        IsoglotError: the model, a word or a dictionary cannot be used; the message says why.
    """
    settings = settings or TransplantConfig(fallback="pieces")
    require(
        settings.initialise == "both",
        f"initialise: {settings.initialise} would lose the model that is to grow. Leave it out.",
    )
    encoder, tokens = open_source(source)
    new_words = [word for word in dict.fromkeys(words) if word not in tokens.ids]
    _check(new_words)
    dictionary = dictionary_of(settings)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        target = _with_words(tokens, new_words, folder)
        new, report = renewed(encoder, tokens, target, dictionary, settings)
        card = _CARD.format(name=out.name, source=source.name, number=len(new_words))
        write_model(new, out, source=source, tokenizer_folder=folder, card=card, report=report)
    return report


def _check(words: Sequence[str]) -> None:
    if not words:
        raise ModelError("There is no word to add: the model has a token for each of them already.")
    for word in words:
        if word != word.strip() or len(word.split()) != 1:
            raise ModelError(f"{word!r} is not one word. Give a word on each line.")


def _with_words(tokens: Tokens, words: Sequence[str], folder: Path) -> Tokens:
    """The tokenizer with more words, after all others; written to a folder and opened there."""
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_str(tokens.tokenizer.backend_tokenizer.to_str())
    # the space before a word belongs to it, as in the tokenizers' own pieces
    tokenizer.add_tokens(
        [AddedToken(word, single_word=True, lstrip=True, normalized=False) for word in words]
    )
    save_tokenizer(tokenizer, tokens.tokenizer, folder)
    return Tokens.open(folder)
