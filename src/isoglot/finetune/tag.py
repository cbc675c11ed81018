"""Tags of words: names, parts of speech. One label a word, said at its first piece.

The other pieces of a word are read but not asked. A sentence longer than the model reads is read in
consecutive chunks of whole words, so every word gets a tag.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from transformers import AutoModelForTokenClassification
from typing_extensions import override

from isoglot.finetune.head import Head, Logits, Piece, model_inputs
from isoglot.tasks.examples import Tagged
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.finetune.settings import FinetuneConfig

OUTSIDE = "O"


class Tag(Head[Tagged, tuple[str, ...]]):
    """Predicts a tag for each word of an example."""

    auto: ClassVar[Any] = AutoModelForTokenClassification

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        super().__init__(folder, settings, labels)
        steps = json.loads(self.tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]
        self._byte_level = '"ByteLevel"' in json.dumps(steps)

    @staticmethod
    @override
    def labels_of(examples: Sequence[Tagged]) -> list[str]:
        return sorted({tag for example in examples for tag in example.tags})

    @override
    def encode(self, examples: Sequence[Tagged], *, training: bool) -> Iterator[Piece]:
        chunks = [
            (number, first, words)
            for number, example in enumerate(examples)
            for first, words in self._chunks(example.words)
        ]
        encoded = self.tokens(
            [self._spelled(words) for _, _, words in chunks],
            is_split_into_words=True,
            truncation=True,
        )
        for row, (number, first, _) in enumerate(chunks):
            inputs = model_inputs(encoded, row)
            places = {first + w: p for w, p in first_pieces(encoded.word_ids(row)).items()}
            labels = [IGNORE] * len(inputs["input_ids"])
            if training:
                for word, place in places.items():
                    labels[place] = self.numbers[examples[number].tags[word]]
            yield Piece(
                example=number,
                rows=(inputs,),
                targets={"labels": labels} if training else {},
                note=places,
            )

    @override
    def predict(
        self, examples: Sequence[Tagged], pieces: Sequence[Piece], logits: Sequence[Logits]
    ) -> list[tuple[str, ...]]:
        # a word that the tokenizer makes nothing of is no name
        fallback = OUTSIDE if OUTSIDE in self.numbers else self.labels[0]
        said = [[fallback] * len(example.words) for example in examples]
        for piece, (scores,) in zip(pieces, logits, strict=True):
            best = scores.argmax(dim=-1).tolist()
            for word, place in piece.note.items():
                said[piece.example][word] = self.labels[best[place]]
        return [tuple(tags) for tags in said]

    def _spelled(self, words: Sequence[str]) -> list[str]:
        """Words as the tokenizer met them in text: byte-level ones count the space before them."""
        return [f" {word}" for word in words] if self._byte_level else list(words)

    def _chunks(self, words: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
        """Consecutive words that fit the model together, and the index of the first of them."""
        room = self.max_length - self.tokenizer.num_special_tokens_to_add()
        # no tokenizer makes more pieces of a word than it has bytes, plus a mark for its start
        if sum(len(word.encode()) + 1 for word in words) <= room:
            yield 0, words
            return
        encoded = self.tokenizer(
            self._spelled(words), is_split_into_words=True, add_special_tokens=False
        )
        lengths = Counter(word for word in encoded.word_ids(0) if word is not None)
        first, used = 0, 0
        for word in range(len(words)):
            if used + lengths[word] > room and word > first:
                yield first, words[first:word]
                first, used = word, 0
            used += lengths[word]
        yield first, words[first:]


def first_pieces(word_ids: Sequence[int | None]) -> dict[int, int]:
    """For each word, the place of its first piece."""
    places: dict[int, int] = {}
    for place, word in enumerate(word_ids):
        if word is not None:
            places.setdefault(word, place)
    return places
