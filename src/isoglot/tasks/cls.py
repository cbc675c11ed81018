"""Amazon reviews in four languages (CLS, cls-acl10): is a review positive?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from xml.etree import ElementTree as ET

from typing_extensions import override

from isoglot.tasks.classification import ClassifyTask
from isoglot.tasks.examples import Classified
from isoglot.tasks.finding import Layout
from isoglot.tasks.lines import damaged, numbered_lines

if TYPE_CHECKING:
    from pathlib import Path

    from isoglot.tasks.base import Part

_MIDDLE = 3.0
"""Reviews with three stars were left out of the distribution."""


class AmazonReviews(ClassifyTask):
    """CLS (Prettenhofer and Stein 2010): en de fr jp, books, dvd and music.

    2,000 train and 2,000 test reviews of each language and category, half of them positive (more
    than three stars). Given out for research. There is no dev part. A review's text is its summary
    and its body. Here all categories of a language make one part; MetaXLM's Table 2 has a model for
    each of them, which are the tasks `cls-books`, `cls-dvd` and `cls-music`.
    """

    name = "cls"
    languages = "de en fr ja"
    line = "positive or negative review"
    paper = "Prettenhofer and Stein 2010"
    licence = "research use only"
    labels = ("negative", "positive")
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/*/{split}.review"),)

    @override
    def read(self, part: Part) -> list[Classified]:
        return [example for path in part.files for example in self._reviews(path)]

    def _reviews(self, path: Path) -> list[Classified]:
        text = "\n".join(line for _, line in numbered_lines(path))
        try:
            root = ET.fromstring(text.encode())  # noqa: S314 (expat bounds what entities expand to)
        except ET.ParseError as error:
            raise damaged(path, error.position[0], f"is not XML ({error}).") from error
        category = path.parent.name
        return [
            self._review(path, f"{category}-{number}", item)
            for number, item in enumerate(root.iter("item"), start=1)
        ]

    def _review(self, path: Path, name: str, item: ET.Element) -> Classified:
        body = (item.findtext("text") or "").strip()
        try:
            stars = float(item.findtext("rating") or "")
        except ValueError as error:
            raise damaged(path, f"item {name}", "has no number of stars.") from error
        if not body or stars == _MIDDLE:
            raise damaged(path, f"item {name}", "has no text, or three stars.")
        summary = (item.findtext("summary") or "").strip()
        return Classified(
            id=name,
            first=f"{summary}\n{body}" if summary else body,
            label="positive" if stars > _MIDDLE else "negative",
        )


class AmazonBooks(AmazonReviews):
    """CLS's reviews of books: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-books"
    line = "positive or negative review of a book"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/books/{split}.review"),)


class AmazonDvds(AmazonReviews):
    """CLS's reviews of films: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-dvd"
    line = "positive or negative review of a film"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/dvd/{split}.review"),)


class AmazonMusic(AmazonReviews):
    """CLS's reviews of music: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-music"
    line = "positive or negative review of music"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/music/{split}.review"),)
