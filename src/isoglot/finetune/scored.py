"""What a fine-tuned model is scored on: its parts, looked through before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.finetune.data import read_whole
from isoglot.finetune.in_words import in_words
from isoglot.finetune.tag import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Collection

    from isoglot.corpus.pretokenize import Pretokenization
    from isoglot.finetune.head import Head
    from isoglot.finetune.prepared import Prepared
    from isoglot.finetune.scenarios import Plan


class Scored:
    """The scored parts of a task; each is read to be checked, and again once a model is there."""

    def __init__(
        self, prepared: Prepared, kind: type[Head[Any, Any]], words: Pretokenization
    ) -> None:
        self._prepared, self._kind, self._words = prepared, kind, words
        self._labels: dict[str, set[str]] = {}

    def check(self, plan: Plan, learned: Collection[str]) -> None:
        """Refuse what would make a training worthless.

        Raises:
            CorpusError: a part is damaged or empty.
            IsoglotError: a part has none of the labels that are learned.
        """
        task, train_task = self._prepared.task, self._prepared.train_task
        for language in plan.score:
            if language not in self._labels:
                self._labels[language] = set(self._kind.labels_of(self._whole(language)))
            # tags of names share what is outside of names, whatever names they have
            known, there = set(learned) - {OUTSIDE}, self._labels[language] - {OUTSIDE}
            if known and there and known.isdisjoint(there):
                raise IsoglotError(
                    f"{task.name} has the labels {_some(there)} in {language!r}, of which a model "
                    f"trained on {train_task.name} knows none ({_some(known)}). Name a task with "
                    "the same labels with --train-on."
                )

    def examples(self, language: str) -> list[Any]:
        """The examples of one language to score, evenly spaced: files are often sorted."""
        whole, most = self._whole(language), self._prepared.settings.max_scored
        number = min(most or len(whole), len(whole))
        spaced = [whole[index * len(whole) // number] for index in range(number)]
        return in_words(spaced, language, self._words)

    def _whole(self, language: str) -> list[Any]:
        prepared = self._prepared
        return read_whole(prepared.task, prepared.data_folder, language, prepared.split)


def _some(labels: set[str]) -> str:
    """A few labels, for a message."""
    first = sorted(labels)[:3]
    return ", ".join(first) + (", ..." if len(labels) > len(first) else "")
