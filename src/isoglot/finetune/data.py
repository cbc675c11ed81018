"""What a plan trains on: its languages' examples, mixed with their originals where asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from isoglot.errors import CorpusError
from isoglot.finetune.code_switch import switched
from isoglot.finetune.in_words import in_words
from isoglot.finetune.originals import with_originals

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.corpus.pretokenize import Pretokenization
    from isoglot.finetune.scenarios import Plan
    from isoglot.finetune.settings import FinetuneConfig
    from isoglot.tasks.base import Split, Task


class TrainingData(NamedTuple):
    """Examples to train on, and which of them, by index, must share a batch."""

    examples: list[Any]
    couples: list[tuple[int, int]]


def training_data(
    task: Task[Any, Any],
    folder: Path,
    plan: Plan,
    settings: FinetuneConfig,
    words: Pretokenization,
) -> TrainingData:
    """The training examples of a plan's languages, divided into words as the model knows them.

    Raises:
        CorpusError: a part is missing, damaged or empty, or no translation though it should be.
    """
    examples: list[Any] = []
    couples: list[tuple[int, int]] = []
    original = plan.original
    originals = [] if original is None else read(task, folder, original, "train", words)
    for language in plan.train:
        own = read(task, folder, language, "train", words, most=settings.max_train)
        if original is None or language == original:
            examples += own
        elif settings.code_switch:
            pairs = switched(own, originals, language=language, original_language=original)
            begin = len(examples)
            couples += [(begin + 2 * i, begin + 2 * i + 1) for i in range(len(pairs))]
            examples += [example for pair in pairs for example in pair]
        else:
            with_originals(own, originals, language=language, original_language=original)
            examples += own
    return TrainingData(examples, couples)


def read(
    task: Task[Any, Any],
    folder: Path,
    language: str,
    split: Split,
    words: Pretokenization,
    *,
    most: int | None = None,
) -> list[Any]:
    """The first examples of one part, of which there is at least one, divided into words."""
    return in_words(read_whole(task, folder, language, split)[:most], language, words)


def read_whole(task: Task[Any, Any], folder: Path, language: str, split: Split) -> list[Any]:
    """All examples of one part as they are given, of which there is at least one."""
    examples: list[Any] = task.read(task.part(folder, language, split))
    if not examples:
        raise CorpusError(
            f"the {split} part of {task.name} for {language!r} in {folder} has no example."
        )
    return examples
