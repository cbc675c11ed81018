"""Tagging in CoNLL's columns, and UD's parts of speech (names: `isoglot.tasks.ner`).

A file has one word and its tags per line, and an empty line after each sentence. `TaggingTask`
reads all tagging tasks, which differ in the columns and the tags allowed; its score is the F1 of
entities as conlleval and seqeval (default mode) count them. `strict_f1` is the F1 of seqeval's
strict mode with the scheme IOB2, in which an entity must begin with B.

A tag is `O`, or a prefix and a type, `B-PER`. An entity starts at B or S, after E or S, and where
the type changes; `I-PER` after `O` starts one too, so IOB1 and IOB2 give the same entities. Tags
without a dash (parts of speech) are counted as seqeval 0.0.12 does, which XTREME used; seqeval 1.2
gives other numbers for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar, NamedTuple

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit, accuracy, f1_scores
from isoglot.tasks.data_files import (
    file_error,
    hf_config_name,
    hf_rows,
    is_hf_file,
    numbered_lines,
)
from isoglot.tasks.examples import TaggedSentence
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

Tags = Sequence[str]
WordsAndTags = tuple[tuple[str, ...], tuple[str, ...]]
ENTITY_TAGS = re.compile(r"O|[BIES]-\w+")


class TaggingTask(FileTask[TaggedSentence, Tags]):
    """A tagging task: files in CoNLL's columns, or a Hugging Face data set."""

    kind = "token-classification"
    version = 1
    metrics: ClassVar[tuple[Metric, ...]] = (
        *(Metric(name=name) for name in ("f1", "precision", "recall", "strict_f1")),
    )
    hf_columns: ClassVar[tuple[str, str]] = ("tokens", "ner_tags")
    """The columns of words and of tags in a Hugging Face data set."""

    def format(self, path: Path) -> ColumnFormat:
        """The format of one file."""
        del path
        return ColumnFormat()

    def clean(self, word: str, language: str) -> str:
        """The word without what a distribution adds to it."""
        del language
        return word

    def section(self, path: Path) -> str:
        """The part of a language's data that a file belongs to, and that is scored alone."""
        del path
        return ""

    @override
    def read(self, split: TaskSplit) -> list[TaggedSentence]:
        examples: list[TaggedSentence] = []
        for path in split.files:
            sentences = self._from_hf(path) if is_hf_file(path) else self.format(path).read(path)
            examples.extend(
                TaggedSentence(
                    id=str(number),
                    words=tuple(self.clean(word, split.language) for word in words),
                    tags=tags,
                    section=self.section(path),
                )
                for number, (words, tags) in enumerate(sentences, start=len(examples) + 1)
            )
        return examples

    def _from_hf(self, path: Path) -> Iterator[WordsAndTags]:
        words, tags = self.hf_columns
        allowed = self.format(path).allowed
        for row in hf_rows(path, words, tags):
            if len(row[words] or ()) != len(row[tags] or ()):
                raise row.error(f"does not have as many {tags} as {words}.")
            for tag in row[tags] or ():
                # a tag stays a number where the file's schema has no names
                if not isinstance(tag, str) or not allowed.fullmatch(tag):
                    raise row.error(f"has {tag!r} where a tag's name is expected.")
            yield tuple(row[words] or ()), tuple(row[tags] or ())

    @override
    def score(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags], language: str
    ) -> dict[str, float]:
        return ner_scores(examples, predictions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFormat:
    """The format of a file in columns."""

    word: int = 0
    """Index of the column of words."""
    tag: int = -1
    """Index of the column of tags."""
    separator: str | None = "\t"
    """Between columns; none: any white space."""
    min_columns: int = 2
    """A line with fewer columns is damaged."""
    comment: re.Pattern[str] | None = None
    """Lines that start with this are skipped."""
    allowed: re.Pattern[str] = ENTITY_TAGS
    """Tags that the file may have."""
    lines: Callable[[Path], Iterable[tuple[int, str]]] = numbered_lines
    """Reads the file's lines with their numbers."""

    def read(self, path: Path) -> Iterator[WordsAndTags]:
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
            word, tag = self._word_and_tag(path, number, line)
            words.append(word)
            tags.append(tag)
        if words:
            yield tuple(words), tuple(tags)

    def _word_and_tag(self, path: Path, number: int, line: str) -> tuple[str, str]:
        cells = line.split(self.separator)
        if len(cells) < self.min_columns:
            what = f"has {len(cells)} columns, {self.min_columns} are needed."
            raise file_error(path, number, what)
        word, tag = cells[self.word], cells[self.tag].strip()
        if not word.strip():
            raise file_error(path, number, "has no word.")
        if not self.allowed.fullmatch(tag):
            what = f"has {tag!r} where a tag like B-PER or NOUN is expected."
            raise file_error(path, number, what)
        return word, tag


class Entity(NamedTuple):
    """A typed span of words, from `start` to `end` inclusive."""

    type: str
    start: int
    end: int


def find_entities(tags: Tags) -> set[Entity]:
    """The entities of one sentence.

    A tag without a dash is its own type and its first letter the prefix: XTREME's script reads
    parts of speech so, and counts a run of one part of speech once.
    """
    found = set()
    start, before, type_before = 0, "O", ""
    for index, tag in enumerate([*tags, "O"]):
        prefix = tag[:1]
        type_ = tag.partition("-")[2] or tag
        continues = prefix not in "OBS" and before not in "OES" and type_ == type_before
        if before != "O" and not continues:
            found.add(Entity(type_before, start, index - 1))
        if not continues:
            start = index
        before, type_before = prefix, type_
    return found


def find_strict_entities(tags: Tags) -> set[Entity]:
    """The entities of one sentence in strict IOB2: B and all I of its type that follow at once.

    An I without such a beginning is no entity (seqeval's strict mode with the scheme IOB2).
    """
    found = set()
    start: int | None = None
    for index, tag in enumerate([*tags, "O"]):
        if start is not None and tag != f"I-{tags[start][2:]}":
            found.add(Entity(tags[start][2:], start, index - 1))
            start = None
        if tag.startswith("B-"):
            start = index
    return found


def to_iob2(tags: Tags) -> tuple[str, ...]:
    """The same entities as IOB2 tags: B at the first word of each."""
    found = ["O"] * len(tags)
    for type_, start, end in find_entities(tags):
        found[start : end + 1] = [f"B-{type_}", *[f"I-{type_}"] * (end - start)]
    return tuple(found)


def entity_scores(
    gold: Iterable[Tags],
    predicted: Iterable[Tags],
    *,
    find: Callable[[Tags], set[Entity]] = find_entities,
) -> dict[str, float]:
    """F1, precision and recall over all entities; 0 where the denominator is 0."""
    num_right = num_gold = num_predicted = 0
    for true_tags, tags in zip(gold, predicted, strict=True):
        assert len(true_tags) == len(tags), "one tag for each word"
        true_entities, found = find(true_tags), find(tags)
        num_right += len(true_entities & found)
        num_gold += len(true_entities)
        num_predicted += len(found)
    return f1_scores(num_right, num_predicted=num_predicted, num_gold=num_gold)


def ner_scores(examples: Sequence[TaggedSentence], predictions: Sequence[Tags]) -> dict[str, float]:
    """F1, precision and recall over all entities, and F1 in strict IOB2."""
    gold = [example.tags for example in examples]
    strict = entity_scores(gold, predictions, find=find_strict_entities)["f1"]
    return {**entity_scores(gold, predictions), "strict_f1": strict}


def tag_accuracy(examples: Sequence[TaggedSentence], predictions: Sequence[Tags]) -> float:
    """The share of words whose tag is correct."""
    true = [tag for example in examples for tag in example.tags]
    return accuracy(true, [tag for tags in predictions for tag in tags])


_TREEBANK = re.compile(r"[a-z]{2,3}_([a-z0-9]+)")


class TreebankTask(TaggingTask):
    """Tags of UD's treebanks.

    Several treebanks of a language are scored one by one (`accuracy gsd`), and the language's score
    is their mean. They are trained on together.
    """

    version = 2  # the mean of treebanks, which were one test set

    @override
    def section(self, path: Path) -> str:
        found = _TREEBANK.match(hf_config_name(path) if is_hf_file(path) else path.name)
        return "" if found is None else found[1]

    @override
    def score(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags], language: str
    ) -> dict[str, float]:
        treebanks: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            treebanks.setdefault(example.section, []).append(number)
        scores = {
            name: self.treebank_scores(
                [examples[number] for number in own], [predictions[number] for number in own]
            )
            for name, own in treebanks.items()
        }
        if len(scores) == 1:
            return next(iter(scores.values()))
        metrics = [metric.name for metric in self.metrics]
        means = {name: fmean(found[name] for found in scores.values()) for name in metrics}
        return means | {
            f"{name} {treebank}": found[name]
            for treebank, found in scores.items()
            for name in metrics
        }

    def treebank_scores(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags]
    ) -> dict[str, float]:
        """The value of each metric on one treebank."""
        return ner_scores(examples, predictions)


_UPOS = re.compile(
    "ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X|_"
)


class UdPos(TreebankTask):
    """UD (Nivre et al. 2020), 17 tags. English EWT: 12,544 train, 2,001 dev, 2,077 test sentences.

    Each treebank of a language is scored alone; the language's score is their mean. Syntactic words
    are read; multiword tokens (`1-2`) and empty nodes (`3.1`) are skipped.

    `accuracy` is over words. `xtreme_f1` is what XTREME's script calls F1: it takes runs of one tag
    for entities, as seqeval 0.0.12 does, and is lower than the accuracy.
    """

    name = "ud-pos"
    languages = "over 150"
    summary = "parts of speech"
    paper = "Nivre et al. 2020"
    license = "per treebank: CC BY-SA or CC BY-NC-SA"
    metrics = (Metric(name="accuracy"), Metric(name="xtreme_f1"))
    hf_columns = ("tokens", "upos")
    layouts: ClassVar = (
        Layout("ud_pos/{language}_*.{split}.tsv"),
        Layout("ud/UD_*/{language}_*-ud-{split}.conllu"),
        Layout("udpos/{split}-{language}.tsv"),
        *hf_layouts("universal_dependencies", "{language}_*"),
    )

    @override
    def format(self, path: Path) -> ColumnFormat:
        if ".conllu" in path.name:
            skipped = re.compile(r"#|\d+[-.]\d+\t")
            return ColumnFormat(word=1, tag=3, min_columns=10, comment=skipped, allowed=_UPOS)
        return ColumnFormat(allowed=_UPOS)

    @override
    def treebank_scores(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags]
    ) -> dict[str, float]:
        xtreme_f1 = entity_scores([example.tags for example in examples], predictions)["f1"]
        return {"accuracy": tag_accuracy(examples, predictions), "xtreme_f1": xtreme_f1}
