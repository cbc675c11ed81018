"""Translate lines of text with an exported encoder-decoder.

Loads a folder that `export_seq2seq` wrote, with its language-specific parts; sorts lines by length,
translates batches of similar length and gives each translation with the number of its line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from isoglot.corpus.tokenization.pretokenization import TextTokenizer
from isoglot.corpus.tokenization.vocabulary import derive_vocabulary, max_characters
from isoglot.errors import ModelError, nearest
from isoglot.languages import find
from isoglot.models import language_embeddings, language_parts
from isoglot.models.config import DecoderConfig, GenerationConfig, ModelConfig
from isoglot.models.loading import load_config
from isoglot.models.seq2seq import Seq2Seq
from isoglot.types import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


_NUM_EDGES = 2
"""The language token and the end token."""


class Translator:
    """An encoder-decoder with its tokenizer."""

    def __init__(self, seq2seq: Seq2Seq, tokenizer: TextTokenizer) -> None:
        self.seq2seq, self.tokenizer = seq2seq.eval(), tokenizer

    @classmethod
    def open(
        cls,
        folder: Path,
        device: torch.device | str | None = None,
        *,
        with_languages: bool = True,
    ) -> Translator:
        """Load a folder that Isoglot exported on a device; none: a GPU where there is one.

        `with_languages` uses the language embeddings that the model was trained with, if any.
        """
        config = load_config(str(folder))
        ids: dict[str, int] | None = getattr(config, "language_token_ids", None)
        if not isinstance(ids, dict) or not all(type(number) is int for number in ids.values()):
            raise ModelError(
                f"{folder} cannot translate: it is not an encoder-decoder that Isoglot trained. "
                "Train one with a recipe such as unmt-mass."
            )
        tokenizer = TextTokenizer.open(folder)
        has_outputs = language_parts.has_outputs(folder)
        has_languages = bool(language_embeddings.languages_of(folder))
        settings = ModelConfig(
            init_from=str(folder),
            language_embeddings="all" if with_languages and has_languages else "none",
            decoder=DecoderConfig(
                cross_attention_output="language" if has_outputs else "shared",
                share_embeddings=False,
            ),
        )
        codes = sorted(ids, key=lambda code: ids[code])
        vocabulary = derive_vocabulary(tokenizer.tokenizer, folder)
        num_tokens = min(ids.values())  # language tokens come after all others
        vocabulary = replace(
            vocabulary,
            size=num_tokens,
            special=tuple(number for number in vocabulary.special if number < num_tokens),
            word_starts=vocabulary.word_starts[:num_tokens],
        )
        seq2seq = Seq2Seq.build(settings, vocabulary, languages=codes)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return cls(seq2seq.to(device), tokenizer)

    @torch.inference_mode()
    def translate(
        self,
        lines: Sequence[str],
        source: str,
        target: str,
        settings: GenerationConfig | None = None,
        *,
        batch_tokens: int = 4096,
        note: Callable[[str], None] | None = None,
    ) -> Iterator[tuple[int, str]]:
        """(line number, translation) of each line, batch by batch, not in order.

        Without settings the search is greedy. `batch_tokens` are source tokens in a batch, with
        padding; `note` is called with a message where lines are too long and truncated.
        """
        settings = settings or GenerationConfig()
        first, second = self.language(source), self.language(target)
        encoded = self._encode(lines, source, note)
        for numbers in _batches([len(ids) for ids in encoded], batch_tokens):
            rows = self._rows([encoded[number] for number in numbers], first)
            languages = torch.full_like(rows.languages[:, 0], second)
            generated = self.seq2seq.generate(rows, languages, settings)
            texts = self.tokenizer.decode(generated.ids, target)
            yield from zip(numbers, texts, strict=True)
        yield from ((number, "") for number, ids in enumerate(encoded) if not ids)

    def language(self, code: str) -> int:
        """The id of a language that the model was trained on."""
        codes = self.seq2seq.language_codes
        name = find(code, codes)
        if name is None:
            raise ModelError(f"the model has no language {code!r}: {nearest(code, codes)}")
        return codes.index(name)

    def _encode(
        self, lines: Sequence[str], language: str, note: Callable[[str], None] | None
    ) -> list[list[int]]:
        """The token ids of each line, truncated to the model's positions."""
        longest = self.seq2seq.encoder.max_positions - _NUM_EDGES
        # one more, so that a cut line is seen to be too long
        limit = max_characters(self.tokenizer.tokenizer, longest) + 1
        encoded = self.tokenizer.encode([line[:limit] for line in lines], language)
        longer = sum(len(ids) > longest for ids in encoded)
        if longer and note is not None:
            note(
                f"{longer} of {len(lines)} lines have more than {longest} tokens, the model's "
                "limit: they are truncated. Give one sentence a line."
            )
        return [ids[:longest] for ids in encoded]

    def _rows(self, texts: list[list[int]], language: int) -> Rows:
        vocabulary = self.seq2seq.vocabulary
        width = max(map(len, texts)) + _NUM_EDGES
        ids = np.full((len(texts), width), vocabulary.pad, np.int64)
        ids[:, 0] = vocabulary.language_token(language)
        for row, text in zip(ids, texts, strict=True):
            row[1 : len(text) + 1], row[len(text) + 1] = text, vocabulary.sep
        is_token = np.arange(width) < np.array([[len(text) + _NUM_EDGES] for text in texts])
        zeros = np.zeros_like(ids)
        fields = {
            "ids": ids,
            "positions": np.where(is_token, np.arange(width), 0),
            "languages": np.full_like(ids, language),
            "sentences": zeros,
            "roles": zeros,
            "rules": zeros,
            "sequences": np.where(is_token, 0, -1),
        }
        device = next(self.seq2seq.parameters()).device
        return Rows(**{name: torch.from_numpy(field) for name, field in fields.items()}).to(device)


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of the lines that are not empty, in batches of similar length, longest first."""
    order = [int(n) for n in np.argsort([-length for length in lengths], kind="stable")]
    batch: list[int] = []
    for number in order:
        if not lengths[number]:
            break
        widest = lengths[batch[0] if batch else number] + _NUM_EDGES
        if batch and widest * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
