"""Six tasks on the generated world: inference, paraphrases, opinions, names, tags, questions.

They read no files: a part is drawn from the world's seed, so every language and split is there, in
seconds, wherever the project runs. Example number i means the same in all languages and has the
same id, as in a translated task; training parts are therefore translations of one another too.
What is asked in dev and test is never asked in training, in any language.

Counts: 3,000 training examples, 300 each for dev and test, in nine languages. Licence: Apache-2.0,
as the project.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot.tasks.base import E, Metric, P, Part, Split, Task
from isoglot.tasks.classification import accuracy
from isoglot.tasks.entities import entity_scores
from isoglot.tasks.examples import Answer, Classified, Question, Tagged
from isoglot.tasks.squad import percentages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isoglot.tasks.base import Kind

_PIVOT = "en"
_SEED = 7
"""Of the tasks' world; the demo's text has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of the world the tasks use, and how many examples they have."""

    train: int = 3000
    """Training examples to draw; the same one may be drawn twice."""
    dev: int = 300
    """Examples to draw for choosing a model."""
    test: int = 300
    """Examples to draw for the score."""
    concepts: int | None = None
    """About how many concepts the lexicon keeps; none: all."""
    entities: int | None = None
    """At most how many countries, languages, currencies and continents there are; none: all."""
    languages: tuple[str, ...] | None = None
    """The languages that have parts; none: all of the testbed's."""


class WorldTask(Task[E, P]):
    """What the six have in common."""

    version: ClassVar[int] = 1
    paper: ClassVar[str] = ""
    licence: ClassVar[str] = "Apache-2.0"
    languages: ClassVar[str] = "9"
    stream: ClassVar[str]
    """The world's method that draws the examples, and their stream's name."""

    def __init__(self, sizes: Sizes | None = None) -> None:
        self.sizes = sizes or Sizes()

    @override
    def parts(self, folder: Path) -> list[Part]:
        from isoglot.testbed import LANGUAGES

        splits: tuple[Split, ...] = ("train", "dev", "test")
        languages = self.sizes.languages or LANGUAGES
        return [Part(code, split, ()) for code in languages for split in splits]

    @override
    def read(self, part: Part) -> list[E]:
        kept = _kept(self.stream, self.sizes, part.split)
        records = _records(self.stream, self.sizes, part.language, part.split)
        return [
            self._example(f"{part.split}-{number}", record)
            for number, (record, keep) in enumerate(zip(records, kept, strict=True))
            if keep
        ]

    @abstractmethod
    def _example(self, name: str, record: Any) -> E:
        """A task's example from the world's record."""


def _records(stream: str, sizes: Sizes, language: str, split: Split) -> Iterator[Any]:
    # here and not above: the world needs the extra `testbed`
    from isoglot.testbed import World

    world = World(_SEED, concepts=sizes.concepts, entities=sizes.entities)
    records: Iterator[Any] = getattr(world, stream)(
        language, getattr(sizes, split), stream=f"{stream}/{split}"
    )
    return records


@cache  # the parts of all languages keep the same draws, and asking takes all that is trained on
def _kept(stream: str, sizes: Sizes, split: Split) -> tuple[bool, ...]:
    """Which draws of a split are used: all for training, else those not trained on."""
    if split == "train":
        return (True,) * sizes.train
    trained = set(_records(stream, sizes, _PIVOT, "train"))
    return tuple(record not in trained for record in _records(stream, sizes, _PIVOT, split))


class _Classifying(WorldTask[Classified, str]):
    """Scored by accuracy."""

    kind: ClassVar[Kind] = "classify"
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="accuracy"),)

    @override
    def score(
        self, examples: Sequence[Classified], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        return {"accuracy": accuracy([example.label for example in examples], predictions)}


class WorldNli(_Classifying):
    """Premise and hypothesis: entailment, neutral or contradiction (a third each)."""

    name: ClassVar[str] = "testbed-nli"
    line: ClassVar[str] = "does the second sentence follow? (generated)"
    stream: ClassVar[str] = "nli"

    @override
    def _example(self, name: str, record: Any) -> Classified:
        return Classified(
            id=name, first=record.premise, second=record.hypothesis, label=record.label
        )


class WorldParaphrases(_Classifying):
    """Do two sentences say the same? Half of them do."""

    name: ClassVar[str] = "testbed-paraphrases"
    line: ClassVar[str] = "do two sentences say the same? (generated)"
    stream: ClassVar[str] = "paraphrases"

    @override
    def _example(self, name: str, record: Any) -> Classified:
        return Classified(
            id=name, first=record.first, second=record.second, label=str(record.label)
        )


class WorldSentiment(_Classifying):
    """Praise or blame, half each."""

    name: ClassVar[str] = "testbed-sentiment"
    line: ClassVar[str] = "praise or blame? (generated)"
    stream: ClassVar[str] = "sentiment"

    @override
    def _example(self, name: str, record: Any) -> Classified:
        return Classified(id=name, first=record.text, label=str(record.label))


class _Tagging(WorldTask[Tagged, tuple[str, ...]]):
    kind: ClassVar[Kind] = "tag"

    @override
    def _example(self, name: str, record: Any) -> Tagged:
        return Tagged(id=name, words=record.words, tags=record.tags)


class WorldNer(_Tagging):
    """Names of places (LOC), languages (LANG) and currencies (CUR), in BIO tags."""

    name: ClassVar[str] = "testbed-ner"
    line: ClassVar[str] = "names of places, languages and currencies (generated)"
    stream: ClassVar[str] = "ner"
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="f1"),)

    @override
    def score(
        self, examples: Sequence[Tagged], predictions: Sequence[tuple[str, ...]], language: str
    ) -> dict[str, float]:
        return entity_scores([example.tags for example in examples], predictions)


class WorldPos(_Tagging):
    """Universal parts of speech."""

    name: ClassVar[str] = "testbed-pos"
    line: ClassVar[str] = "parts of speech (generated)"
    stream: ClassVar[str] = "pos"
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="accuracy"),)

    @override
    def score(
        self, examples: Sequence[Tagged], predictions: Sequence[tuple[str, ...]], language: str
    ) -> dict[str, float]:
        true = [tag for example in examples for tag in example.tags]
        return {"accuracy": accuracy(true, [tag for tags in predictions for tag in tags])}


class WorldQuestions(WorldTask[Question, str]):
    """Questions on four sentences, the answer a span of them."""

    name: ClassVar[str] = "testbed-questions"
    line: ClassVar[str] = "questions whose answer is a span of the context (generated)"
    kind: ClassVar[Kind] = "span"
    stream: ClassVar[str] = "questions"
    metrics: ClassVar[tuple[Metric, ...]] = (Metric(name="f1"), Metric(name="exact"))

    @override
    def _example(self, name: str, record: Any) -> Question:
        answer = Answer(text=record.answer, start=record.answer_start)
        return Question(
            id=name, question=record.question, context=record.context, answers=(answer,)
        )

    @override
    def score(
        self, examples: Sequence[Question], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        # Chinese has no spaces: its characters are compared as words
        normalize = " ".join if language == "zh" else str.lower
        found = percentages(examples, predictions, normalize)
        return {metric: percent / 100 for metric, percent in found.items()}


TESTBED: tuple[type[WorldTask[Any, Any]], ...] = (
    WorldNli,
    WorldParaphrases,
    WorldSentiment,
    WorldNer,
    WorldPos,
    WorldQuestions,
)
"""All of them, for lists of tasks."""
