"""Blanks in sentences, filled by a masked language model in three ways.

    alone               [CLS] the cat [MASK] milk [SEP]                               MLM's input
    with translation    [CLS] the cat [MASK] milk [SEP] [SEP] paka anakunywa ... [SEP]      TLM's
    translation alone   [CLS] paka anakunywa maziwa [SEP] [MASK]                          CAMLM's

The sequences are built by the objectives themselves (`objectives.tlm`, `objectives.camlm`), with
the settings of the model's own run where it has a recipe, and the encoder applies their mask rules:
what is shown is what training computes. In the third way the blank is a slot after the translation;
no other token of its own sentence is in the sequence.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from isoglot.batching.builder import RowBuffer
from isoglot.corpus.tokenization.pretokenization import Pretokenizer
from isoglot.corpus.tokenization.vocabulary import derive_vocabulary, max_characters
from isoglot.errors import IsoglotError, ModelError
from isoglot.evaluation.loading import MissingLMHead
from isoglot.explore.pair_layouts import Layouts, layouts_of
from isoglot.languages import NAMES, canonical, is_language, plain_code
from isoglot.models import language_embeddings
from isoglot.objectives.masking import build_sequence
from isoglot.types import IntArray, Pair, Sequence

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.explore.session import ExploreModel
    from isoglot.models.encoder import Encoder
    from isoglot.types import Vocabulary

ALONE, WITH_TRANSLATION, TRANSLATION_ALONE = "alone", "with translation", "translation alone"
BARS = "|||"
"""Between a sentence and its translation, as in files of `isoglot align`."""
BLANK = "___"
_BLANK = re.compile(r"\s*_{3,}")
"""A blank with the space before it, which belongs to the token that fills it."""
_LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})?)\s*:\s*")
_NO_LANGUAGE = -1


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text and its language, empty if it is not said."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence with blanks, and perhaps its translation."""

    sentence: Sentence
    translation: Sentence | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may fill a blank."""

    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Filled:
    """What a model predicts for the blanks of a sentence."""

    by_way: Mapping[str, list[list[Candidate]]]
    """Way -> for each blank its candidates, the most likely first."""
    notes: tuple[str, ...] = ()


def parse_clozes(text: str, mask_tokens: tuple[str, ...] = ()) -> list[Cloze]:
    """The sentences of a text, one on each line: `sw: Paka ___ maziwa. ||| en: The cat drinks ...`.

    The language before a colon and the translation after the bars may be left out. A blank is three
    or more underscores, or one of the mask tokens.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for token in mask_tokens:
            line = line.replace(token, f" {BLANK}")  # noqa: PLW2901
        if not line.strip():
            continue
        first, bars, second = line.partition(BARS)
        cloze = Cloze(_parse_sentence(first), _parse_sentence(second) if second.strip() else None)
        if _BLANK.search(cloze.sentence.text) is None:
            raise IsoglotError(
                f"Line {number} has no blank. Write {BLANK} in the place of a word"
                f"{f', before the {BARS}' if bars else ''}."
            )
        if cloze.translation is not None and _BLANK.search(cloze.translation.text):
            raise IsoglotError(
                f"Line {number} has a blank in the translation after {BARS}. Leave blanks in the "
                "first sentence only."
            )
        found.append(cloze)
    if not found:
        raise IsoglotError(f"There is no sentence. Write one with {BLANK} in the place of a word.")
    return found


def _parse_sentence(text: str) -> Sentence:
    match = _LANGUAGE.match(text)
    if match and is_language(match[1]) and plain_code(match[1]) in NAMES:
        return Sentence(text[match.end() :].strip(), canonical(match[1]))
    return Sentence(text.strip())


class BlankFiller:
    """Fills blanks with one model."""

    def __init__(self, model: ExploreModel, layouts: Layouts | None = None) -> None:
        """Read what building sequences needs; a model without an LM head is refused when used."""
        self._tokenizer, self._folder = model.tokenizer, model.folder
        self.mask_tokens = ("<mask>", "[MASK]", str(model.tokenizer.mask_token))
        """Spellings of a blank, besides underscores."""
        self.layouts = layouts or layouts_of(model.folder)
        self.vocabulary: Vocabulary = derive_vocabulary(model.tokenizer, model.folder)
        self.encoder = with_slot_languages(model.encoder, model.folder)
        self._pretokenizer = Pretokenizer.load(model.folder)
        self._limit = max_characters(model.tokenizer, self.encoder.max_positions)

    def sequences(self, cloze: Cloze) -> tuple[dict[str, Sequence], list[str]]:
        """Way -> the sequence that the model reads, and sentences about ways that do not fit."""
        ids, languages = self._encode(cloze.sentence), [self._language(cloze.sentence)]
        places = np.flatnonzero(ids == self.vocabulary.mask)
        found = {ALONE: build_sequence(ids, languages[0], self.vocabulary)}
        if cloze.translation is not None:
            other = self._encode(cloze.translation)
            languages.append(self._language(cloze.translation))
            pair = Pair(
                first=ids, second=other, first_language=languages[0], second_language=languages[1]
            )
            joined = self.layouts.tlm.join_pair(pair, self.vocabulary)
            found[WITH_TRANSLATION] = self.layouts.tlm.with_languages(joined, self.vocabulary)
            found[TRANSLATION_ALONE] = self.layouts.camlm.read_translation(
                other,
                places,
                np.full(len(places), self.vocabulary.mask, np.int32),
                languages=(languages[1], languages[0]),
                sentences=(1, 0),
                vocabulary=self.vocabulary,
            )
        most = self.encoder.max_positions
        fitting = {way: one for way, one in found.items() if int(one.positions.max()) < most}
        notes = [
            f"{way}: the sequence of {len(one)} tokens is longer than the model's {most} positions."
            for way, one in found.items()
            if way not in fitting
        ]
        return fitting, notes

    @torch.no_grad()
    def fill(self, cloze: Cloze, *, num_candidates: int = 5) -> Filled:
        """The candidates of each blank in each way."""
        if isinstance(self.encoder.lm_head, MissingLMHead):
            raise ModelError(
                f"{self._folder} has no LM head to fill blanks with. Open a masked language model."
            )
        sequences, notes = self.sequences(cloze)
        if not sequences:
            raise IsoglotError(" ".join(notes))
        longest = max(map(len, sequences.values()))
        buffer = RowBuffer(len(sequences), longest, self.vocabulary.pad)
        positions: list[torch.Tensor] = []
        for row, sequence in enumerate(sequences.values()):
            start = buffer.put(sequence, row, 0)
            positions.append(torch.from_numpy(start + _asked(sequence, self.vocabulary.mask)))
        device = next(self.encoder.parameters()).device
        states = self.encoder(buffer.rows().to(device))
        by_way = {}
        for way, at in zip(sequences, positions, strict=True):
            logits = self.encoder.logits_at(states, at.to(device)).float()
            best = logits.softmax(dim=-1).topk(min(num_candidates, logits.shape[-1]))
            by_way[way] = [
                [Candidate(self._shown(token), value) for token, value in zip(*blank, strict=True)]
                for blank in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ]
        return Filled(by_way, tuple(notes))

    def _encode(self, sentence: Sentence) -> IntArray:
        """Token ids without special tokens at the edges; a blank is one mask token."""
        parts = _BLANK.split(sentence.text[: self._limit])
        if sentence.language:
            parts = [
                self._pretokenizer.apply(part, sentence.language) if part.strip() else part
                for part in parts
            ]
        text = self._tokenizer.mask_token.join(parts)
        ids = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        if not ids:
            raise IsoglotError("A sentence has no token: write some words.")
        return np.array(ids, np.int32)

    def _language(self, sentence: Sentence) -> int:
        if self.encoder.languages is None or not sentence.language:
            return _NO_LANGUAGE
        return self.encoder.language_id(sentence.language)

    def _shown(self, token: int) -> str:
        """A token as a reader writes it, after an ellipsis if it continues a word.

        A token that is no whole text, such as a byte, is shown as the vocabulary writes it.
        """
        raw = str(self._tokenizer.convert_ids_to_tokens(token))
        text: str = self._tokenizer.decode([token]).strip().removeprefix("##")
        if not text or "\N{REPLACEMENT CHARACTER}" in text:
            return raw
        return text if self.vocabulary.word_starts[token] else f"…{text}"


def _asked(sequence: Sequence, mask: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The positions of the blanks in a sequence, in their order."""
    if "slots" in sequence.markers:
        return sequence.markers["slots"]
    return np.flatnonzero(sequence.ids == mask)


def with_slot_languages(encoder: Encoder, folder: Path) -> Encoder:
    """The encoder with the language embeddings of slots, where the model was trained with them.

    ERNIE-M's slots have them, and sentences do not; encoders are loaded for scoring without them.
    The weights are shared.
    """
    if encoder.languages is not None or language_embeddings.used_on(folder) != "slots":
        return encoder
    codes = language_embeddings.codes_of(folder)
    table = nn.Embedding(len(codes), encoder.model.get_input_embeddings().embedding_dim)
    language_embeddings.load(folder, table, codes)
    found = copy.copy(encoder)
    found._modules = dict(encoder._modules)  # noqa: SLF001 (copied, so that `encoder` stays as it is)
    found.languages = table.to(next(encoder.parameters()).device)
    found.language_codes = codes
    found.settings = replace(encoder.settings, language_embeddings="slots")
    return found
