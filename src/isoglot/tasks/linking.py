"""Linking to entities across languages: masked names, and objects of facts (XLM-K's two tasks).

`isoglot knowledge heldout` writes the files from the held-out part of a corpus's knowledge, an
object a line: `entity` and `description`; `text`, `start` and `end` of a mention, or `text` and
`relation` (a P number) of a fact; `also`, the other objects of the fact. A line without `text` is
one more candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from isoglot import json_text
from isoglot.tasks.base import Metric, TaskSplit, subsample
from isoglot.tasks.data_files import file_error, numbered_lines
from isoglot.tasks.examples import EntityQuery
from isoglot.tasks.layouts import FileTask, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HITS = (1, 10)
"""Ranks up to which an entity counts as found."""


class LinkingTask(FileTask[EntityQuery, float]):
    """Queries in one language, candidate descriptions in another."""

    kind = "linking"
    version = 1
    languages = "any two"
    metrics = (*(Metric(name=f"hits@{rank}") for rank in HITS), Metric(name="mrr"))
    paper = "Jiang et al. 2022"
    license = "that of the knowledge"
    has_relations: ClassVar[bool]
    """Is a query a fact, or a mention?"""

    @override
    def read(self, split: TaskSplit) -> list[EntityQuery]:
        return [
            self._example(path, number, line)
            for path in split.files
            for number, line in numbered_lines(path)
        ]

    def _example(self, path: Path, number: int, line: str) -> EntityQuery:
        try:
            found: dict[str, Any] = json_text.parse(line)
            example = EntityQuery(**{**found, "also": tuple(found.get("also", ()))})
        except (ValueError, TypeError, AttributeError) as error:
            raise file_error(path, number, f"is not an example ({error}).") from error
        fault = self._fault(example)
        if fault:
            raise file_error(path, number, fault)
        return example

    def _fault(self, example: EntityQuery) -> str | None:
        texts = (example.entity, example.description, example.text, *example.also)
        numbers = (example.start, example.end)
        if not all(isinstance(text, str) for text in texts):
            return "has an entity, description or text that is not text."
        if not example.entity or not example.description.strip():
            return "has no entity or no description."
        if not all(isinstance(place, int) for place in numbers):
            return "has a start or end that is not a number."
        if not example.text:
            return None
        if self.has_relations:
            return None if isinstance(example.relation, int) else "has no relation."
        inside = 0 <= example.start < example.end <= len(example.text)
        return None if inside else "has a start and end that are not inside its text."

    @override
    def limited(self, examples: list[EntityQuery], limit: int | None) -> list[EntityQuery]:
        """At most `limit` queries among all candidates: fewer would be easier to tell apart."""
        asked = [number for number, example in enumerate(examples) if example.text]
        chosen = subsample(asked, limit)
        left = set(asked).difference(chosen)
        return [
            EntityQuery(entity=example.entity, description=example.description)
            if number in left
            else example
            for number, example in enumerate(examples)
        ]

    @override
    def score(
        self, examples: Sequence[EntityQuery], predictions: Sequence[float], language: str
    ) -> dict[str, float]:
        """Means over the queries; equal candidates share the mean of their ranks."""
        pairs = zip(examples, predictions, strict=True)
        ranks = [rank for example, rank in pairs if example.text]
        if not ranks:
            return {}
        found = {f"hits@{most}": sum(rank <= most for rank in ranks) / len(ranks) for most in HITS}
        return {**found, "mrr": sum(1 / rank for rank in ranks) / len(ranks)}


class EntityLinking(LinkingTask):
    """A masked name in one language: which description in the other is its entity's?

    The task that masked entity prediction trains; its trained heads are used where a model folder
    has them.
    """

    name = "entity-linking"
    summary = "the description of a masked name, in another language"
    has_relations = False
    layouts: ClassVar = (Layout("entity-linking/{language}-{other}.jsonl", split="test"),)


class ObjectEntailment(LinkingTask):
    """A subject and a relation: which description in the other language is the object's?

    The task that object entailment trains; its trained heads are used where a model folder has
    them, and else relations are ignored.
    """

    name = "object-entailment"
    summary = "the description of a fact's object, in another language"
    has_relations = True
    layouts: ClassVar = (Layout("object-entailment/{language}-{other}.jsonl", split="test"),)
