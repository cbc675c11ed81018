"""Change the vocabulary of a model: transplant, grow or trim.

transplant   source folder + target tokenizer (+ dictionaries)  -->  model folder + report
grow         model folder + words (+ dictionaries)              -->  larger model folder + report
trim         model folder + text files in any languages         -->  smaller model folder + report

Transplanting makes a monolingual model the start of a cross-lingual one: MetaXLM (Chi et al.,
2021), section 3.2. Growing adds words as whole tokens; the old tokens stay. Trimming drops the
tokens that given text does not use: most parameters of a multilingual model are embeddings of
other languages.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoglot.errors import ModelError, require
from isoglot.models import language_embeddings
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.loading import SUPPORTED_MODELS
from isoglot.models.transplant.build_tokenizer import (
    add_required_tokens,
    grow_tokenizer,
    trim_tokenizer,
)
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.dictionary import expand_patterns, read_dictionaries
from isoglot.models.transplant.matching import Matches, match_tokens
from isoglot.models.transplant.replace_vocabulary import describe_positions, replace_vocabulary
from isoglot.models.transplant.report import TransplantReport, build_report
from isoglot.models.transplant.tokens import TokenizerTokens
from isoglot.models.transplant.used_tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.models.transplant.dictionary import Dictionary

_TRANSPLANT_CARD = """\
---
library_name: transformers
pipeline_tag: fill-mask
tags:
- isoglot
- cross-lingual
---

# {name}

The model `{source}` with the vocabulary of `{target}`, transplanted with Isoglot. Its new
embeddings are not trained yet; transplant.json counts where they come from.
"""
_GROW_CARD = "# {name}\n\nThe model `{source}` with {number:,} more words, added with Isoglot.\n"
_TRIM_CARD = "# {name}\n\nThe model `{source}`, trimmed with Isoglot to {size:,} tokens.\n"


def transplant(
    source: Path, tokenizer: Path, out: Path, settings: TransplantConfig | None = None
) -> TransplantReport:
    """Give a model the vocabulary of another tokenizer, and write it."""
    settings = settings or TransplantConfig()
    target, dictionary = TokenizerTokens.open(tokenizer), _load_dictionary(settings)
    encoder, tokens = _load_source(source)
    new, report = _transfer_vocabulary(encoder, tokens, target, dictionary, settings)
    card = _TRANSPLANT_CARD.format(name=out.name, source=source.name, target=tokenizer.name)
    _write_model(new, out, source=source, tokenizer_folder=tokenizer, card=card, report=report)
    return report


def grow(
    source: Path, out: Path, words: Sequence[str], settings: TransplantConfig | None = None
) -> TransplantReport:
    """Add words to a model, and write it.

    The embedding of a new word comes from a match, a translation or the mean of its subwords.
    """
    settings = settings or TransplantConfig(fallback="subwords")
    require(
        settings.initialize == "both",
        f"initialize: {settings.initialize} would lose the model that is to grow. Leave it out.",
    )
    encoder, tokens = _load_source(source)
    new_words = [word for word in dict.fromkeys(words) if word not in tokens.ids]
    if not new_words:
        raise ModelError("There is no word to add: the model has a token for each of them already.")
    for word in new_words:
        if word != word.strip() or len(word.split()) != 1:
            raise ModelError(f"{word!r} is not one word. Give a word on each line.")
    dictionary = _load_dictionary(settings)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        target = grow_tokenizer(tokens, new_words, folder)
        new, report = _transfer_vocabulary(encoder, tokens, target, dictionary, settings)
        card = _GROW_CARD.format(name=out.name, source=source.name, number=len(new_words))
        _write_model(new, out, source=source, tokenizer_folder=folder, card=card, report=report)
    return report


def trim(source: Path, out: Path, *, texts: Sequence[Path], min_count: int = 1) -> TransplantReport:
    """Keep the tokens that occur at least `min_count` times in the texts; write the model."""
    counts = count_tokens(TokenizerTokens.open(source), texts)
    return trim_to_tokens(source, out, np.flatnonzero(counts >= min_count).tolist())


def trim_to_tokens(source: Path, out: Path, wanted: Iterable[int]) -> TransplantReport:
    """Keep these ids, and those that the tokenizer cannot work without; write the model."""
    encoder, tokens = _load_source(source)
    kept = add_required_tokens(tokens, wanted)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        target = trim_tokenizer(tokens, kept, folder)
        matches = Matches.copies(kept)
        new = replace_vocabulary(encoder, matches, target.vocabulary, TransplantConfig())
        report = build_report(encoder, new, matches, source=tokens, target=target, notes=[])
        card = _TRIM_CARD.format(name=out.name, source=source.name, size=len(kept))
        _write_model(new, out, source=source, tokenizer_folder=folder, card=card, report=report)
    return report


def _transfer_vocabulary(
    encoder: Encoder,
    source: TokenizerTokens,
    target: TokenizerTokens,
    dictionary: Dictionary | None,
    settings: TransplantConfig,
) -> tuple[Encoder, TransplantReport]:
    """An encoder with an embedding for each of the target's tokens, and where they come from."""
    if settings.initialize in ("body", "none"):
        size = target.vocabulary.size
        matches = Matches.of(["random"] * size, [{}] * size)
    else:
        matches = match_tokens(
            source,
            target,
            dictionary,
            fallback=settings.fallback,
            translations=settings.translations,
        )
    new = replace_vocabulary(encoder, matches, target.vocabulary, settings)
    report = build_report(
        encoder,
        new,
        matches,
        source=source,
        target=target,
        notes=[describe_positions(encoder, new)],
        dictionary=dictionary,
    )
    return new, report


def _load_dictionary(settings: TransplantConfig) -> Dictionary | None:
    """The dictionaries that the settings name, as one; none where they name none."""
    if not settings.dictionaries:
        return None
    return read_dictionaries(
        expand_patterns(settings.dictionaries),
        source_column=settings.source_column,
        max_malformed_ratio=settings.max_malformed_ratio,
    )


def _load_source(folder: Path) -> tuple[Encoder, TokenizerTokens]:
    """A masked language model with an embedding for each token of its tokenizer."""
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no model. Name a Hugging Face model folder.")
    _check_is_masked_lm(folder)
    tokens = TokenizerTokens.open(folder)
    settings = ModelConfig(init_from=str(folder), language_embeddings="none")
    encoder = Encoder.from_pretrained(str(folder), settings)
    if encoder.vocabulary_size < tokens.vocabulary.size:
        raise ModelError(
            f"{folder} has {encoder.vocabulary_size} embeddings and a tokenizer of "
            f"{tokens.vocabulary.size} tokens. Put the tokenizer that the model was trained with "
            "into the folder."
        )
    return encoder.eval(), tokens


def _write_model(
    encoder: Encoder,
    out: Path,
    *,
    source: Path,
    tokenizer_folder: Path,
    card: str,
    report: TransplantReport,
) -> None:
    """Write the new model, with its report and the source's language embeddings, if any."""
    export_encoder(encoder, out, tokenizer_folder=tokenizer_folder, card=card)
    report.write(out)
    languages = source / language_embeddings.FILE
    if languages.is_file():
        shutil.copyfile(languages, out / languages.name)


def _check_is_masked_lm(folder: Path) -> None:
    """Refuse a decoder by name: transformers' own message would list all masked language models."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{folder}/config.json is not a model's config: {error}") from error
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
        raise ModelError(
            f"{folder} is a {config.model_type} model, not a masked language model: it reads text "
            f"in one direction only, or has no LM head. {SUPPORTED_MODELS}"
        )
