"""CoNLL's columns: a word and its tags on each line, an empty line after each sentence.

One reader for all tagging tasks; they differ in which column is which and in the tags allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric, Part
from isoglot.tasks.entities import entity_scores
from isoglot.tasks.examples import Tagged
from isoglot.tasks.finding import FileTask
from isoglot.tasks.hub import hub_rows, is_hub_file
from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isoglot.tasks.base import Kind

ENTITY_TAGS = re.compile(r"O|[BIES]-\w+")
Words = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a sentence and their tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column is which."""

    word: int = 0
    tag: int = -1
    separator: str | None = "\t"
    """None: any white space."""
    fewest: int = 2
    """Fewer columns than this are a damaged line."""
    comment: re.Pattern[str] | None = None
    """Lines that begin like this are no words."""
    allowed: re.Pattern[str] = ENTITY_TAGS
    lines: Callable[[Path], Iterable[tuple[int, str]]] = numbered_lines

    def read(self, path: Path) -> Iterator[Words]:
        """The sentences of a file."""
        words: list[str] = []
        tags: list[str] = []
        for number, line in self.lines(path):
            if not line.strip():
                if words:
                    yield tuple(words), tuple(tags)
                words, tags = [], []
                continue
            if self.comment is not None and self.comment.match(line):
                continue
            word, tag = self._cells(path, number, line)
            words.append(word)
            tags.append(tag)
        if words:
            yield tuple(words), tuple(tags)

    def _cells(self, path: Path, number: int, line: str) -> tuple[str, str]:
        cells = line.split(self.separator)
        if len(cells) < self.fewest:
            raise damaged(path, number, f"has {len(cells)} columns, {self.fewest} are needed.")
        word, tag = cells[self.word], cells[self.tag].strip()
        if not word.strip():
            raise damaged(path, number, "has no word.")
        if not self.allowed.fullmatch(tag):
            raise damaged(path, number, f"has {tag!r} where a tag like B-PER or NOUN is expected.")
        return word, tag


class ColumnTask(FileTask[Tagged, "Sequence[str]"]):
    """A tagging task in CoNLL's columns, or as a dataset folder with lists of words and tags."""

    kind: ClassVar[Kind] = "tag"
    version = 1
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric(name="f1"),
        Metric(name="precision"),
        Metric(name="recall"),
    )
    hub_columns: ClassVar[tuple[str, str]] = ("tokens", "ner_tags")
    """Names of the columns of words and of tags in a dataset folder."""

    def columns(self, path: Path) -> Columns:
        """How one file is laid out."""
        del path
        return Columns()

    def clean(self, word: str, language: str) -> str:
        """The word itself, where a distribution adds something to it."""
        del language
        return word

    @override
    def read(self, part: Part) -> list[Tagged]:
        examples: list[Tagged] = []
        for path in part.files:
            sentences = self._from_hub(path) if is_hub_file(path) else self.columns(path).read(path)
            examples.extend(
                Tagged(
                    id=str(number),
                    words=tuple(self.clean(word, part.language) for word in words),
                    tags=tags,
                )
                for number, (words, tags) in enumerate(sentences, start=len(examples) + 1)
            )
        return examples

    def _from_hub(self, path: Path) -> Iterator[Words]:
        words, tags = self.hub_columns
        allowed = self.columns(path).allowed
        for number, row in hub_rows(path, words, tags):
            if len(row[words] or ()) != len(row[tags] or ()):
                raise damaged(path, number, f"does not have as many {tags} as {words}.")
            for tag in row[tags] or ():
                # numbers stay numbers where the file's schema does not name them
                if not isinstance(tag, str) or not allowed.fullmatch(tag):
                    raise damaged(path, number, f"has {tag!r} where a tag's name is expected.")
            yield tuple(row[words] or ()), tuple(row[tags] or ())

    @override
    def score(
        self, examples: Sequence[Tagged], predictions: Sequence[Sequence[str]], language: str
    ) -> dict[str, float]:
        return entity_scores([example.tags for example in examples], predictions)
