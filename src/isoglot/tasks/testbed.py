"""Six tasks on the generated world: NLI, paraphrases, sentiment, NER, POS tags and questions.

They read no files: a split is generated from the world's seed, so that every language and split
exists wherever the project runs. Example number i has the same meaning and id in all languages, as
in a translated task; training splits are therefore translations of one another too. No example of
dev or test is in training, in any language.

3,000 training examples, 300 each for dev and test, in nine languages.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot.tasks.base import E, Metric, P, Split, Task, TaskSplit
from isoglot.tasks.classification import ClassificationTask
from isoglot.tasks.examples import Answer, LabeledText, Question, TaggedSentence
from isoglot.tasks.squad import QuestionAnsweringTask
from isoglot.tasks.tagging import TaggingTask, Tags, tag_accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isoglot.tasks.squad import Normalize

_PIVOT = "en"
_SEED = 7
"""Random seed of the tasks' world; the demo's text has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSizes:
    """The size of the generated world, and the number of examples."""

    train: int = 3000
    """Training examples; an example may be repeated."""
    dev: int = 300
    """Dev examples before those of training are removed."""
    test: int = 300
    """Test examples before those of training are removed."""
    concepts: int | None = None
    """Approximate number of concepts of the lexicon; none: all."""
    entities: int | None = None
    """Most countries, languages, currencies and continents each; none: all."""
    languages: tuple[str, ...] | None = None
    """The languages of the tasks; none: all of the testbed's."""


class WorldTask(Task[E, P]):
    """The base class of the six tasks."""

    version = 1
    paper = ""
    license = "Apache-2.0"
    languages = "9"
    stream: ClassVar[str]
    """The method of `World` that generates the examples, and the name of its random stream."""

    def __init__(self, sizes: WorldSizes | None = None) -> None:
        self.sizes = sizes or WorldSizes()

    @override
    def splits(self, folder: Path) -> list[TaskSplit]:
        from isoglot.testbed import LANGUAGES

        names: tuple[Split, ...] = ("train", "dev", "test")
        languages = self.sizes.languages or LANGUAGES
        return [TaskSplit(code, name, ()) for code in languages for name in names]

    @override
    def read(self, split: TaskSplit) -> list[E]:
        used = _in_use(self.stream, self.sizes, split.name)
        records = _records(self.stream, self.sizes, split.language, split.name)
        return [
            self._example(f"{split.name}-{number}", record)
            for number, (record, use) in enumerate(zip(records, used, strict=True))
            if use
        ]

    @abstractmethod
    def _example(self, name: str, record: Any) -> E:
        """The example of a record that the world generated."""


def _records(stream: str, sizes: WorldSizes, language: str, split: Split) -> Iterator[Any]:
    # imported here: the world needs the extra `testbed`
    from isoglot.testbed import World

    world = World(_SEED, num_concepts=sizes.concepts, max_entities=sizes.entities)
    generate: Callable[..., Iterator[Any]] = getattr(world, stream)
    return generate(language, getattr(sizes, split), stream=f"{stream}/{split}")


@cache  # the same for all languages, and it generates the whole training split
def _in_use(stream: str, sizes: WorldSizes, split: Split) -> tuple[bool, ...]:
    """Which records of a split are used: all of training, else those that are not in training."""
    if split == "train":
        return (True,) * sizes.train
    trained = set(_records(stream, sizes, _PIVOT, "train"))
    return tuple(record not in trained for record in _records(stream, sizes, _PIVOT, split))


class WorldNli(WorldTask[LabeledText, str], ClassificationTask):
    """Premise and hypothesis: entailment, neutral or contradiction (a third each)."""

    name = "testbed-nli"
    summary = "entailment (generated)"
    stream = "nli"

    @override
    def _example(self, name: str, record: Any) -> LabeledText:
        return LabeledText(
            id=name, first=record.premise, second=record.hypothesis, label=record.label
        )


class WorldParaphrases(WorldTask[LabeledText, str], ClassificationTask):
    """Do two sentences say the same? Half of them do."""

    name = "testbed-paraphrases"
    summary = "paraphrase or not (generated)"
    stream = "paraphrases"

    @override
    def _example(self, name: str, record: Any) -> LabeledText:
        return LabeledText(
            id=name, first=record.first, second=record.second, label=str(record.label)
        )


class WorldSentiment(WorldTask[LabeledText, str], ClassificationTask):
    """Praise or blame, half each."""

    name = "testbed-sentiment"
    summary = "positive or negative sentence (generated)"
    stream = "sentiment"

    @override
    def _example(self, name: str, record: Any) -> LabeledText:
        return LabeledText(id=name, first=record.text, label=str(record.label))


class WorldNer(WorldTask[TaggedSentence, Tags], TaggingTask):
    """Names of places (LOC), languages (LANG) and currencies (CUR), in BIO tags."""

    name = "testbed-ner"
    summary = "names of places, languages and currencies (generated)"
    stream = "ner"
    metrics = (Metric(name="f1"),)

    @override
    def _example(self, name: str, record: Any) -> TaggedSentence:
        return TaggedSentence(id=name, words=record.words, tags=record.tags)


class WorldPos(WorldNer):
    """Universal parts of speech."""

    name = "testbed-pos"
    summary = "parts of speech (generated)"
    stream = "pos"
    metrics = (Metric(name="accuracy"),)

    @override
    def score(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags], language: str
    ) -> dict[str, float]:
        return {"accuracy": tag_accuracy(examples, predictions)}


class WorldQuestions(WorldTask[Question, str], QuestionAnsweringTask):
    """Questions on four sentences, the answer a span of them."""

    name = "testbed-questions"
    summary = "questions whose answer is a span of the context (generated)"
    stream = "questions"

    @override
    def _example(self, name: str, record: Any) -> Question:
        answer = Answer(text=record.answer, start=record.answer_start)
        return Question(
            id=name, question=record.question, context=record.context, answers=(answer,)
        )

    @override
    def normalizer(self, language: str) -> Normalize:
        # Chinese has no spaces: its characters are compared as words
        return " ".join if language == "zh" else str.lower
