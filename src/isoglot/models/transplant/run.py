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

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.atomic import write_errors
from isoglot.errors import ModelError, require
from isoglot.folders import model_folder, tokenizer_folder
from isoglot.models import language_embeddings
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.models.loading import check_is_encoder, load_config
from isoglot.models.model_card import front_matter
from isoglot.models.transplant.build_tokenizer import (
    add_required_tokens,
    grow_tokenizer,
    trim_tokenizer,
)
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.dictionary import expand_patterns, read_dictionaries
from isoglot.models.transplant.matching import Matches, TokenIndex, match_tokens
from isoglot.models.transplant.output_bias import fit_new_biases
from isoglot.models.transplant.replace_vocabulary import describe_positions, replace_vocabulary
from isoglot.models.transplant.report import TransplantReport, build_report
from isoglot.models.transplant.tokens import SurfaceForm, TokenizerTokens
from isoglot.models.transplant.used_tokens import (
    compare_splits,
    count_tokens,
    most_split_words,
    new_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isoglot.models.transplant.dictionary import Dictionary

_CARD = front_matter("fill-mask") + "\n\n# {name}\n\n"
_TRANSPLANT_CARD = (
    _CARD
    + "The model `{source}` with the vocabulary of `{target}`, transplanted with Isoglot. Its "
    "new\nembeddings are not trained yet; transplant.json counts where they come from.\n"
)
_GROW_CARD = _CARD + "The model `{source}` with {number:,} more words, added with Isoglot.\n"
_TRIM_CARD = _CARD + "The model `{source}`, trimmed with Isoglot to {size:,} tokens.\n"


def transplant(
    source: Path, tokenizer: Path, out: Path, settings: TransplantConfig | None = None
) -> TransplantReport:
    """Give a model the vocabulary of another tokenizer, and write it."""
    settings = settings or TransplantConfig()
    folder = tokenizer_folder(tokenizer)
    target, dictionary = TokenizerTokens.open(folder), _load_dictionary(settings, source)
    encoder, tokens = _load_source(source)
    new, report = _transfer_vocabulary(encoder, tokens, target, dictionary, settings)
    card = _TRANSPLANT_CARD.format(name=out.name, source=source.name, target=tokenizer.name)
    export_encoder(new, out, tokenizer_folder=folder, card=card, add_files=report.write)
    return report


def grow(
    source: Path,
    out: Path,
    words: Sequence[str] = (),
    settings: TransplantConfig | None = None,
    *,
    texts: Sequence[Path] = (),
    number: int = 5000,
    balance: Sequence[Path] = (),
) -> TransplantReport:
    """Add words, and the `number` words of texts that save most tokens; write the model.

    The embedding of a new word comes from a translation, a match or the mean of its subwords. Its
    output bias is set on the texts in `balance`, or on `texts`, so that the mean probability of the
    word at masked tokens is its share of the tokens (`output_bias.py`).
    """
    settings = settings or TransplantConfig(fallback="subwords")
    require(
        settings.initialize == "both",
        f"initialize: {settings.initialize} would lose the model that is to grow. Leave it out.",
    )
    tokens = TokenizerTokens.open(model_folder(source))
    new, notes = _choose_words(tokens, words, texts, number)
    dictionary = _load_dictionary(settings, source)
    encoder, tokens = _load_source(source)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with write_errors(folder):
            target = grow_tokenizer(tokens, new, folder)
        matches = match_tokens(
            tokens, target, dictionary, settings, first_translated=tokens.vocabulary.size
        )
        grown = replace_vocabulary(encoder, matches, target.vocabulary, settings)
        changed = fit_new_biases(grown, target, tokens.vocabulary.size, balance or texts)
        report = build_report(
            encoder,
            grown,
            matches,
            source=tokens,
            target=target,
            notes=notes if changed is None else [*notes, changed.sentence()],
            dictionary=dictionary,
            splits=compare_splits(tokens, target, texts),
        )
        card = _GROW_CARD.format(name=out.name, source=source.name, number=len(new))
        export_encoder(grown, out, tokenizer_folder=folder, card=card, add_files=report.write)
    return report


def _choose_words(
    tokens: TokenizerTokens, words: Sequence[str], texts: Sequence[Path], number: int
) -> tuple[list[str], list[str]]:
    """The words to add, and sentences on those that are not added."""
    for word in words:
        if word != word.strip() or len(word.split()) != 1:
            raise ModelError(f"{word!r} is not one word. Give a word on each line.")
    new, others = new_words(tokens, words)
    notes = []
    if others:
        reasons = ", ".join(f"{count:,} are {reason}" for reason, count in others.items())
        notes.append(f"{others.total():,} of the words are not added: {reasons}.")
    if texts:
        chosen = most_split_words(tokens, texts, number)
        if len(chosen) < number:
            notes.append(
                f"{len(chosen):,} words of the text are added, not {number:,}: it has no more that "
                "are split into several tokens and can become one."
            )
        new = list(dict.fromkeys([*new, *chosen]))
    if not new:
        raise ModelError(
            "There is no word to add: the model has a token for each of them already. "
            + " ".join(notes)
        )
    return new, notes


def trim(source: Path, out: Path, *, texts: Sequence[Path], min_count: int = 1) -> TransplantReport:
    """Keep the tokens that occur at least `min_count` times in the texts; write the model."""
    counts = count_tokens(TokenizerTokens.open(model_folder(source)), texts)
    return trim_to_tokens(source, out, np.flatnonzero(counts >= min_count).tolist())


def trim_to_tokens(source: Path, out: Path, wanted: Iterable[int]) -> TransplantReport:
    """Keep these ids, and those that the tokenizer cannot work without; write the model."""
    encoder, tokens = _load_source(source)
    kept = add_required_tokens(tokens, wanted)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with write_errors(folder):
            target = trim_tokenizer(tokens, kept, folder)
        matches = Matches.copies(kept)
        new = replace_vocabulary(encoder, matches, target.vocabulary, TransplantConfig())
        report = build_report(encoder, new, matches, source=tokens, target=target, notes=[])
        card = _TRIM_CARD.format(name=out.name, source=source.name, size=len(kept))
        export_encoder(new, out, tokenizer_folder=folder, card=card, add_files=report.write)
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
        matches = match_tokens(source, target, dictionary, settings)
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


def _load_dictionary(settings: TransplantConfig, source: Path) -> Dictionary | None:
    """The dictionaries that the settings name, as one; none where they name none."""
    if not settings.dictionaries:
        return None
    files = expand_patterns(settings.dictionaries)
    index = TokenIndex(TokenizerTokens.open(model_folder(source)), boundary=False)
    return read_dictionaries(
        files,
        source_column=settings.source_column,
        max_malformed_ratio=settings.max_malformed_ratio,
        is_source_word=lambda word: (
            index.find_spelling(SurfaceForm(word, starts_word=True)) is not None
        ),
    )


def _load_source(folder: Path) -> tuple[Encoder, TokenizerTokens]:
    """A masked language model with an embedding for each token of its tokenizer."""
    folder = model_folder(folder)
    check_is_encoder(str(folder), load_config(str(folder)))
    tokens = TokenizerTokens.open(folder)
    use: Any = language_embeddings.used_on(folder) or "none"
    settings = ModelConfig(init_from=str(folder), language_embeddings=use)
    codes = language_embeddings.codes_of(folder)
    encoder = Encoder.from_pretrained(str(folder), settings, languages=codes)
    if encoder.vocabulary_size < tokens.vocabulary.size:
        raise ModelError(
            f"{folder} has {encoder.vocabulary_size} embeddings and a tokenizer of "
            f"{tokens.vocabulary.size} tokens. Put the tokenizer that the model was trained with "
            "into the folder."
        )
    return encoder.eval(), tokens
