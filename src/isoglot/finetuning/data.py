"""Training data and test sets of a fine-tuning.

    part of a task --read, pretokenize--> examples --(pair with originals, code-switch)--> training

In translate scenarios each translated row is matched with its original by their common id. PPA's
code-switching (Pan et al., 2021, section 2.3) trains on a translated pair with one half in the
original language: a Spanish question and context become (question_es, context_en) and (question_en,
context_es), both in the same batch, and the purely Spanish pair is not used. The label is the
pair's; an answer is that of the context's language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from isoglot.errors import CorpusError, IsoglotError
from isoglot.languages import language_sides
from isoglot.tasks.base import name_folders, subsample
from isoglot.tasks.examples import LabeledText, Question
from isoglot.tasks.pretokenized import pretokenize_examples

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isoglot.corpus.tokenization.pretokenization import Pretokenizer
    from isoglot.finetuning.head import TaskHead
    from isoglot.finetuning.plan import FinetunePlan, TrainingSpec
    from isoglot.finetuning.settings import FinetuneConfig
    from isoglot.tasks.base import DataFolders, Split, Task

OUTSIDE = "O"
"""The tag of words outside of entities."""


class TrainingData(NamedTuple):
    """Training examples, and what batches need to know of them."""

    examples: list[Any]
    pairs: list[tuple[int, int]]
    """Pairs of indices that must share a batch."""
    languages: list[tuple[str, str]]
    """The languages of each example's first and second text."""


def training_data(
    task: Task[Any, Any],
    data: DataFolders,
    spec: TrainingSpec,
    settings: FinetuneConfig,
    pretokenization: Pretokenizer,
) -> TrainingData:
    """The training examples of a training's languages, pretokenized as the model expects."""
    examples: list[Any] = []
    pairs: list[tuple[int, int]] = []
    languages: list[tuple[str, str]] = []
    original = spec.original_language
    originals = (
        [] if original is None else read_examples(task, data, original, "train", pretokenization)
    )
    for language in spec.train_languages:
        own = read_examples(
            task, data, language, "train", pretokenization, limit=settings.max_train_examples
        )
        if original is None or language == original:
            examples += own
            languages += [language_sides(language)] * len(own)
            continue
        translated = paired_with_originals(
            own, originals, language=language, original_language=original
        )
        if settings.code_switch:
            first = len(examples)
            pairs += [(first + 2 * i, first + 2 * i + 1) for i in range(len(translated))]
            examples += [example for pair in translated for example in code_switched(*pair)]
            languages += [(language, original), (original, language)] * len(translated)
        else:
            examples += own
            languages += [language_sides(language)] * len(own)
    return TrainingData(examples, pairs, languages)


def read_examples(
    task: Task[Any, Any],
    data: DataFolders,
    language: str,
    split: Split,
    pretokenization: Pretokenizer,
    *,
    limit: int | None = None,
) -> list[Any]:
    """The first examples of a part, pretokenized; at least one."""
    examples = read_part(task, data, language, split)[:limit]
    return pretokenize_examples(examples, language, pretokenization)


def read_part(task: Task[Any, Any], data: DataFolders, language: str, split: Split) -> list[Any]:
    """All examples of a part, unchanged; at least one."""
    examples: list[Any] = task.read(task.find_split(data, language, split))
    if not examples:
        folders = name_folders(data)
        raise CorpusError(
            f"the {split} part of {task.name} for {language!r} in {folders} has no example."
        )
    return examples


def check_translations(plan: FinetunePlan, specs: Sequence[TrainingSpec]) -> None:
    """Refuse training rows without their originals, of all trainings before the first begins."""
    task, data, limit = plan.train_task, plan.data_folder, plan.settings.max_train_examples
    originals: dict[str, list[Any]] = {}
    for spec in specs:
        original = spec.original_language
        for language in spec.train_languages:
            if original is None or language == original:
                continue
            if original not in originals:
                originals[original] = read_part(task, data, original, "train")
            paired_with_originals(
                read_part(task, data, language, "train")[:limit],
                originals[original],
                language=language,
                original_language=original,
            )


def paired_with_originals(
    translated: Sequence[Any], originals: Sequence[Any], *, language: str, original_language: str
) -> list[tuple[Any, Any]]:
    """Each translated example with the original of the same id.

    Two languages that number their rows independently would be matched by chance, so a pair with
    different labels is refused like a missing id.
    """
    by_id = {example.id: example for example in originals}

    def refuse(rows: Sequence[Any], why: str) -> None:
        if rows:
            raise CorpusError(
                f"{len(rows)} of {len(translated)} training rows of {language!r} (the first is "
                f"{rows[0].id!r}) are not translations of rows of {original_language!r}: {why}. "
                f"Leave {language!r} out, or use the scenario pooled or supervised for every "
                "language's own data."
            )

    refuse([example for example in translated if example.id not in by_id], "their ids differ")
    pairs = [(example, by_id[example.id]) for example in translated]
    # questions have no label: their answer depends on the context's language
    mismatched = [
        example
        for example, original in pairs
        if getattr(example, "label", None) != getattr(original, "label", None)
    ]
    refuse(mismatched, "the labels of rows with the same id differ")
    return pairs


def code_switched(translation: Any, original: Any) -> tuple[Any, Any]:
    """The two mixed examples of a translated pair: translated half first, then original half."""
    if isinstance(translation, Question):
        return (
            replace(original, question=translation.question),
            replace(translation, question=original.question),
        )
    if isinstance(translation, LabeledText) and translation.second is not None:
        return (
            replace(translation, second=original.second),
            replace(translation, first=original.first),
        )
    raise CorpusError(
        "code-switching needs examples with two texts: a question and a context, or two sentences. "
        "Train this task with --no-code-switch."
    )


class TestSets:
    """The test sets of a task; each is read and checked before training, and again for scoring."""

    __test__ = False  # no test class of pytest's

    def __init__(
        self, plan: FinetunePlan, head: type[TaskHead[Any, Any]], pretokenization: Pretokenizer
    ) -> None:
        self._plan, self._head, self._pretokenization = plan, head, pretokenization
        self._labels: dict[str, set[str]] = {}

    def check(self, spec: TrainingSpec, trained_labels: Collection[str]) -> None:
        """Read the test sets of a training; refuse one without any label of the training data."""
        task, train_task = self._plan.task, self._plan.train_task
        for language in spec.test_languages:
            if language not in self._labels:
                self._labels[language] = set(self._head.labels_of(self._read(language)))
            # O is in every tag set, whatever the entity types
            known, found = set(trained_labels) - {OUTSIDE}, self._labels[language] - {OUTSIDE}
            if known and found and known.isdisjoint(found):
                raise IsoglotError(
                    f"{task.name} has the labels {_first_few(found)} in {language!r}, none of "
                    f"which {train_task.name} has ({_first_few(known)}). Name a training task "
                    "with the same labels with --train-on."
                )

    def examples(self, language: str) -> list[Any]:
        """The examples of one language to score."""
        chosen = subsample(self._read(language), self._plan.settings.max_test_examples)
        return pretokenize_examples(chosen, language, self._pretokenization)

    def _read(self, language: str) -> list[Any]:
        plan = self._plan
        return read_part(plan.task, plan.data_folder, language, plan.test_split)


def _first_few(labels: set[str]) -> str:
    first = sorted(labels)[:3]
    return ", ".join(first) + (", ..." if len(labels) > len(first) else "")
