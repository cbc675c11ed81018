"""Text classification: the base class of its tasks, PAWS-X, and the Amazon reviews of CLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from xml.etree import ElementTree as ET

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit, accuracy
from isoglot.tasks.data_files import Row, file_error, numbered_lines, read_rows
from isoglot.tasks.examples import LabeledText
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MIDDLE = 3.0
"""Stars of reviews that are neither positive nor negative; CLS leaves them out."""


class ClassificationTask(FileTask[LabeledText, str]):
    """A task with a fixed set of labels, scored by accuracy."""

    kind = "text-classification"
    version = 1
    metrics = (Metric(name="accuracy"),)
    labels: ClassVar[tuple[str, ...]]
    """All labels, in the order of a classifier's outputs."""

    def checked_label(self, row: Row, label: str) -> str:
        """The label of a row, refused if it is not one of the task's."""
        if label not in self.labels:
            labels = " or ".join(self.labels)
            raise row.error(f"has the label {label!r}, not {labels}.")
        return label

    @override
    def score(
        self, examples: Sequence[LabeledText], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        return {"accuracy": accuracy([example.label for example in examples], predictions)}


class PawsX(ClassificationTask):
    """PAWS-X (Yang et al. 2019): seven languages, 2,000 dev and 2,000 test pairs each.

    Train is 49,401 English pairs, or their machine translation. A sentence that the translators
    left out is `NS` in the file (German: 68 dev and 32 test pairs); these pairs count, since
    published scores are over all 2,000.
    """

    name = "paws-x"
    languages = "de en es fr ja ko zh"
    summary = "paraphrase or not"
    paper = "Yang et al. 2019"
    license = "free for any purpose"
    labels = ("0", "1")
    layouts: ClassVar = (
        Layout("pawsx/{language}.{split}.tsv"),
        Layout("x-final/{language}/{split}.tsv"),
        *hf_layouts("paws-x"),
    )

    @override
    def read(self, split: TaskSplit) -> list[LabeledText]:
        return [
            LabeledText(
                id=row.text("id"),
                first=row.text("sentence1"),
                second=row.text("sentence2"),
                label=self.checked_label(row, row.text("label")),
            )
            for row in read_rows(split.files)
        ]


class AmazonReviews(ClassificationTask):
    """CLS, cls-acl10 (Prettenhofer and Stein 2010): en de fr jp, books, dvd and music.

    2,000 train and 2,000 test reviews of each language and category, half of them positive (more
    than three stars); no dev split. The text is the summary and the body of a review. Here all
    categories of a language are one split; MetaXLM's Table 2 has one model for each category: the
    tasks `cls-books`, `cls-dvd` and `cls-music`.
    """

    name = "cls"
    languages = "de en fr ja"
    summary = "positive or negative review"
    paper = "Prettenhofer and Stein 2010"
    license = "research use only"
    labels = ("negative", "positive")
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/*/{split}.review"),)

    @override
    def read(self, split: TaskSplit) -> list[LabeledText]:
        return [example for path in split.files for example in _reviews(path)]


class AmazonBooks(AmazonReviews):
    """CLS's reviews of books: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-books"
    summary = "positive or negative review of a book"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/books/{split}.review"),)


class AmazonDvds(AmazonReviews):
    """CLS's reviews of films: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-dvd"
    summary = "positive or negative review of a film"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/dvd/{split}.review"),)


class AmazonMusic(AmazonReviews):
    """CLS's reviews of music: 2,000 train and 2,000 test reviews of each language."""

    name = "cls-music"
    summary = "positive or negative review of music"
    layouts: ClassVar = (Layout("cls-acl10-unprocessed/{language}/music/{split}.review"),)


def _reviews(path: Path) -> list[LabeledText]:
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        root = ET.fromstring(text.encode())  # noqa: S314 (expat bounds what entities expand to)
    except ET.ParseError as error:
        raise file_error(path, error.position[0], f"is not XML ({error}).") from error
    category = path.parent.name
    return [
        _review(path, f"{category}-{number}", item)
        for number, item in enumerate(root.iter("item"), start=1)
    ]


def _review(path: Path, name: str, item: ET.Element) -> LabeledText:
    body = (item.findtext("text") or "").strip()
    try:
        stars = float(item.findtext("rating") or "")
    except ValueError as error:
        raise file_error(path, f"item {name}", "has no number of stars.") from error
    if not body or stars == _MIDDLE:
        raise file_error(path, f"item {name}", "has no text, or three stars.")
    summary = (item.findtext("summary") or "").strip()
    return LabeledText(
        id=name,
        first=f"{summary}\n{body}" if summary else body,
        label="positive" if stars > _MIDDLE else "negative",
    )
