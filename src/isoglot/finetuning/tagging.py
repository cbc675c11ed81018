"""The head for token classification (named entities, parts of speech): one tag for each word.

The first token of a word carries its label; its other tokens are read without a label. A sentence
longer than the model's limit is split into consecutive chunks of whole words, so that every word
gets a tag.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from transformers import AutoModelForTokenClassification
from typing_extensions import override

from isoglot.finetuning.data import OUTSIDE
from isoglot.finetuning.head import Logits, TaskHead, Window, model_inputs
from isoglot.tasks.examples import TaggedSentence
from isoglot.types import IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.finetuning.settings import FinetuneConfig


class TokenClassificationHead(TaskHead[TaggedSentence, tuple[str, ...]]):
    """Predicts a tag for each word of an example."""

    auto_class: ClassVar[Any] = AutoModelForTokenClassification

    def __init__(self, folder: Path, settings: FinetuneConfig, labels: Sequence[str]) -> None:
        super().__init__(folder, settings, labels)
        pre_tokenizer = json.loads(self.tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]
        self._is_byte_level = '"ByteLevel"' in json.dumps(pre_tokenizer)

    @staticmethod
    @override
    def labels_of(examples: Sequence[TaggedSentence]) -> list[str]:
        return sorted({tag for example in examples for tag in example.tags})

    @override
    def encode(self, examples: Sequence[TaggedSentence], *, training: bool) -> Iterator[Window]:
        chunks = [
            (number, first, words)
            for number, example in enumerate(examples)
            for first, words in self._chunks(example.words)
        ]
        encoding = self.tokenize(
            [self._spelled(words) for _, _, words in chunks],
            is_split_into_words=True,
            truncation=True,
        )
        for index, (number, first, _) in enumerate(chunks):
            inputs = model_inputs(encoding, index)
            positions = {first + w: p for w, p in first_tokens(encoding.word_ids(index)).items()}
            labels = [IGNORE] * len(inputs["input_ids"])
            if training:
                for word, position in positions.items():
                    labels[position] = self.label_ids[examples[number].tags[word]]
            yield Window(
                example=number,
                sequences=(inputs,),
                targets={"labels": labels} if training else {},
                alignment=positions,
            )

    @override
    def decode(
        self,
        examples: Sequence[TaggedSentence],
        windows: Sequence[Window],
        logits: Sequence[Logits],
    ) -> list[tuple[str, ...]]:
        # a word without any token gets the tag O
        fallback = OUTSIDE if OUTSIDE in self.label_ids else self.labels[0]
        tags = [[fallback] * len(example.words) for example in examples]
        for window, (scores,) in zip(windows, logits, strict=True):
            best = scores.argmax(dim=-1).tolist()
            for word, position in window.alignment.items():
                tags[window.example][word] = self.labels[best[position]]
        return [tuple(of_example) for of_example in tags]

    def _spelled(self, words: Sequence[str]) -> list[str]:
        """Words as in running text: byte-level tokenizers include the preceding space."""
        return [f" {word}" for word in words] if self._is_byte_level else list(words)

    def _chunks(self, words: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
        """Consecutive words that fit into one sequence, with the index of the first word."""
        limit = self.max_length - self.tokenizer.num_special_tokens_to_add()
        # a word has at most as many tokens as bytes, and one for its start
        if sum(len(word.encode()) + 1 for word in words) <= limit:
            yield 0, words
            return
        encoding = self.tokenizer(
            self._spelled(words), is_split_into_words=True, add_special_tokens=False, verbose=False
        )
        lengths = Counter(word for word in encoding.word_ids(0) if word is not None)
        first, used = 0, 0
        for word in range(len(words)):
            if used + lengths[word] > limit and word > first:
                yield first, words[first:word]
                first, used = word, 0
            used += lengths[word]
        yield first, words[first:]


def first_tokens(word_ids: Sequence[int | None]) -> dict[int, int]:
    """Word -> position of its first token."""
    positions: dict[int, int] = {}
    for position, word in enumerate(word_ids):
        if word is not None:
            positions.setdefault(word, position)
    return positions
