"""Examples that a model gets wrong, by test set: what the tab *Errors* lists.

    models and pairs    sentences whose nearest sentence is not their translation, and that one
    predictions file    lines of `isoglot evaluate --save-predictions`: facts, entities
    results file        which examples are wrong (`outcomes`)

The first is computed here, with the vectors, the search and the rule of `isoglot evaluate`; the
files are read by `mistake_files`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from isoglot.errors import IsoglotError
from isoglot.languages import canonical_name, find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.explore.session import ExploreModel

Sides = tuple[list[str], list[str]]
"""Sentences and their translations."""
TestName = tuple[str, str]
"""Task, and language or pair of languages, of a test set."""
ORDERS = ("largest margin", "smallest margin", "test set")
"""What comes first; `test set` is its own order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One example that is wrong."""

    item: int
    """Index of the example in its test set, from 0, by which a link names it."""
    language: str
    """Its language, or a direction: `en→sw`."""
    text: str
    """Empty where it is not known."""
    right: tuple[str, ...] = ()
    """All right answers; none where they are not known."""
    chosen: str = ""
    """What the model chose instead; empty where it is not known."""
    margin: float | None = None
    """By how much the model prefers its choice to the right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """The mistakes of one model in one task and language."""

    __test__ = False  # no test of pytest

    count: int
    """Examples; those of retrieval count in both directions."""
    mistakes: tuple[Mistake, ...]
    note: str = ""
    """What else a reader has to know."""


@dataclass(frozen=True)
class Source:
    """A model or a file that mistakes are of; each test set is read when it is first needed."""

    name: str
    """On the page."""
    names: tuple[TestName, ...]
    read: Callable[[TestName], TestSet]

    @cached_property
    def _known(self) -> dict[TestName, TestSet]:
        return {}

    def test_set(self, name: TestName) -> TestSet:
        """One test set."""
        if name not in self.names:
            raise IsoglotError(f"{self.name} has no test set of {name[0]} in {name[1]}.")
        if name not in self._known:
            self._known[name] = self.read(name)
        return self._known[name]


def retrieval_mistakes(model: ExploreModel, language: str, sides: Sides) -> TestSet:
    """The sentences of pairs whose nearest sentence is not their translation, in both directions.

    A sentence with the same text as the translation is right, as in `isoglot evaluate`.
    """
    from isoglot.evaluation.evaluate import pairs_job
    from isoglot.evaluation.retrieval import delivered_choices

    job, examples = pairs_job(model.folder, (model.encoder, model.tokenizer), language, sides)
    codes = language.split("-")
    found: list[Mistake] = []
    for side, choices in enumerate(delivered_choices(job, examples)):
        texts, others = sides[side], sides[1 - side]
        # what the model reads decides: texts may be pretokenized
        read = [pair.first if side else pair.second for pair in examples]
        direction = "→".join(reversed(codes) if side else codes)
        found += [
            Mistake(
                item=item,
                language=direction,
                text=texts[item],
                right=(others[item],),
                chosen=others[chosen],
                margin=choices.cosines[item] - choices.right_cosines[item],
            )
            for item, chosen in enumerate(choices.indices)
            if read[chosen] != read[item]
        ]
    return TestSet(
        count=2 * len(examples),
        mistakes=tuple(found),
        note="The margin is the cosine with the chosen sentence less that with the translation.",
    )


def sort_mistakes(
    test_set: TestSet, *, direction: str = "", order: str = ORDERS[0]
) -> list[Mistake]:
    """The mistakes in one direction or language (empty: all), in an order of `ORDERS`.

    Mistakes without a margin come last.
    """
    found = [one for one in test_set.mistakes if direction in ("", one.language)]
    if order == ORDERS[2]:
        return sorted(found, key=lambda one: one.item)
    sign = -1 if order == ORDERS[0] else 1
    return sorted(found, key=lambda m: (1, 0.0) if m.margin is None else (0, sign * m.margin))


def find_test_set(
    sources: Sequence[Source], task: str, language: str
) -> tuple[Source, TestName] | None:
    """The first source with a test set of a task in a language; empty ones stand for any.

    A language is found in any spelling, and where no test set is named so, in a pair.
    """
    for fits in (_is_same, _is_side):
        for source in sources:
            for name in source.names:
                if task in ("", name[0]) and (not language or fits(name[1], language)):
                    return source, name
    return None


def _is_same(own: str, language: str) -> bool:
    return find(language, [own]) is not None


def _is_side(own: str, language: str) -> bool:
    return canonical_name(language) in own.split("-")
