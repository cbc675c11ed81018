"""Translates lines of text with an exported encoder-decoder.

Opens a folder that `export_seq2seq` wrote, with what lies beside the plain model; sorts lines by
length, writes them in batches of about one length and gives each back with its number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoglot.corpus.pretokenize import Pretokenization
from isoglot.corpus.tokenizer import derive_vocabulary, open_tokenizer
from isoglot.errors import ModelError, nearest
from isoglot.models import by_language, language_embeddings
from isoglot.models.config import DecoderConfig, ModelConfig
from isoglot.models.joining_words import joiner
from isoglot.models.opening import open_config
from isoglot.models.seq2seq import Seq2Seq
from isoglot.models.writing import WritingConfig
from isoglot.types import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.types import Vocabulary

_EDGES = 2


class Translator:
    """An encoder-decoder with its tokenizer, ready to translate."""

    def __init__(self, seq2seq: Seq2Seq, tokenizer: Any, words: Pretokenization) -> None:
        self.seq2seq, self.tokenizer, self.words = seq2seq.eval(), tokenizer, words

    @classmethod
    def open(cls, folder: Path, device: torch.device | str | None = None) -> Translator:
        """Open a folder, on a device or the one at hand.

        Raises:
            ModelError: it is no encoder-decoder of Isoglot's.
        """
        config = open_config(str(folder))
        ids: dict[str, int] | None = getattr(config, "language_token_ids", None)
        if ids is None:
            raise ModelError(
                f"{folder} does not translate: it is no encoder-decoder that Isoglot trained. "
                "Train one with a recipe such as unmt-mass."
            )
        tokenizer = open_tokenizer(folder)
        settings = ModelConfig(
            start=str(folder),
            languages="all" if language_embeddings.used_on(folder) == "all" else "none",
            decoder=DecoderConfig(
                cross_output="language" if by_language.has_outputs(folder) else "shared",
                share_embeddings=False,
            ),
        )
        codes = sorted(ids, key=lambda code: ids[code])
        vocabulary = _without(derive_vocabulary(tokenizer, folder), min(ids.values()))
        seq2seq = Seq2Seq.build(settings, vocabulary, languages=codes)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return cls(seq2seq.to(device), tokenizer, Pretokenization.load(folder))

    @torch.inference_mode()
    def translate(
        self,
        lines: Sequence[str],
        source: str,
        target: str,
        settings: WritingConfig | None = None,
        *,
        batch_tokens: int = 4096,
        note: Callable[[str], None] | None = None,
    ) -> Iterator[tuple[int, str]]:
        """(number, translation) of each line, batch by batch, not in order.

        A model whose text was divided into words reads lines so; what it writes is joined again.

        Args:
            lines: one sentence each; an empty one stays empty.
            source: code of their language.
            target: code of the language to write.
            settings: how; none: greedily.
            batch_tokens: tokens read at a time, padding included.
            note: is told of lines that are too long to be read whole.
        """
        settings = settings or WritingConfig()
        first, second = self.language(source), self.language(target)
        join = joiner(self.words.name_of(target), target)
        encoded = self._encoded(lines, source, note)
        for numbers in _batches([len(ids) for ids in encoded], batch_tokens):
            rows = self._rows([encoded[number] for number in numbers], first)
            languages = torch.full_like(rows.languages[:, 0], second)
            written = self.seq2seq.write(rows, languages, settings)
            said = self.tokenizer.batch_decode(written.ids, skip_special_tokens=True)
            # a line stays one, whatever tokens there are
            texts = (join(" ".join(text.splitlines()).strip()) for text in said)
            yield from zip(numbers, texts, strict=True)
        yield from ((number, "") for number, ids in enumerate(encoded) if not ids)

    def language(self, code: str) -> int:
        """The number of a language.

        Raises:
            ModelError: the model was not trained on it.
        """
        codes = self.seq2seq.language_codes
        if code not in codes:
            raise ModelError(f"the model has no language {code!r}: {nearest(code, codes)}")
        return codes.index(code)

    def _encoded(
        self, lines: Sequence[str], language: str, note: Callable[[str], None] | None
    ) -> list[list[int]]:
        """The tokens of each line, as many as the model can read."""
        if not lines:
            return []  # which transformers' tokenizers cannot do
        texts = [self.words.apply(line, language) for line in lines]
        # as in a corpus, a text that spells a special token is text like any other
        found = self.tokenizer(texts, add_special_tokens=False, split_special_tokens=True)
        encoded: list[list[int]] = found["input_ids"]
        most = self.seq2seq.encoder.max_positions - _EDGES
        longer = sum(len(ids) > most for ids in encoded)
        if longer and note is not None:
            note(
                f"{longer} of {len(lines)} lines have more than {most} tokens, the most that the "
                "model reads: their ends are not translated. Give it a sentence a line."
            )
        return [ids[:most] for ids in encoded]

    def _rows(self, texts: list[list[int]], language: int) -> Rows:
        vocabulary = self.seq2seq.vocabulary
        width = max(map(len, texts)) + _EDGES
        ids = np.full((len(texts), width), vocabulary.pad, np.int64)
        ids[:, 0] = vocabulary.language_token(language)
        for row, text in zip(ids, texts, strict=True):
            row[1 : len(text) + 1], row[len(text) + 1] = text, vocabulary.sep
        there = np.arange(width) < np.array([[len(text) + _EDGES] for text in texts])
        nothing = np.zeros_like(ids)
        fields = {
            "ids": ids,
            "positions": np.where(there, np.arange(width), 0),
            "languages": np.full_like(ids, language),
            "sentences": nothing,
            "parts": nothing,
            "rules": nothing,
            "sequences": np.where(there, 0, -1),
        }
        device = next(self.seq2seq.parameters()).device
        return Rows(**{name: torch.from_numpy(field) for name, field in fields.items()}).to(device)


def _without(vocabulary: Vocabulary, first: int) -> Vocabulary:
    """A vocabulary without the tokens from some id on: those of languages."""
    return replace(
        vocabulary,
        size=first,
        special=tuple(number for number in vocabulary.special if number < first),
        word_starts=vocabulary.word_starts[:first],
    )


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of lines, but for empty ones: some of about one length at a time."""
    order = [int(n) for n in np.argsort([-length for length in lengths], kind="stable")]
    batch: list[int] = []
    for number in order:
        if not lengths[number]:
            break
        widest = lengths[batch[0] if batch else number] + _EDGES
        if batch and widest * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
