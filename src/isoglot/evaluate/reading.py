"""A task whose examples are read in words, for a model whose text was divided into words first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.finetune.in_words import in_words
from isoglot.tasks.base import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isoglot.corpus.pretokenize import Pretokenization
    from isoglot.tasks import Part


class InWords(Task[Any, Any]):
    """Another task, but for the texts of its examples.

    Its scores are the other task's: they count texts as equal that differ in spaces alone, which
    the model cannot tell apart either.
    """

    def __init__(self, task: Task[Any, Any], words: Pretokenization) -> None:
        self._task, self._words = task, words

    def __getattr__(self, name: str) -> Any:
        """Its name, its metrics and whatever else it is known by."""
        return getattr(self._task, name)

    @override
    def parts(self, folder: Path) -> list[Part]:
        return self._task.parts(folder)

    @override
    def read(self, part: Part) -> list[Any]:
        examples = self._task.read(part)
        if not examples:
            names = ", ".join(map(str, part.files))
            raise CorpusError(
                f"There are no examples of {self._task.name} in {names}. Fetch it again, or leave "
                f"{part.language} out."
            )
        return in_words(examples, part.language, self._words)

    @override
    def score(
        self, examples: Sequence[Any], predictions: Sequence[Any], language: str
    ) -> dict[str, float]:
        return self._task.score(examples, predictions, language)
