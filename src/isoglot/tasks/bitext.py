"""Bitext retrieval and mining: Tatoeba, files of translations of your own, and BUCC."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit, accuracy, f1_scores
from isoglot.tasks.data_files import (
    file_error,
    file_with_ending,
    hf_rows,
    is_hf_file,
    numbered_lines,
    parallel_lines,
)
from isoglot.tasks.examples import BitextEntry, SentencePair
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class RetrievalTask(FileTask[SentencePair, int]):
    """Translation pairs: the translation of each sentence is to be found among all others."""

    kind = "retrieval"
    version = 1
    metrics = (Metric(name="accuracy@1"),)

    @override
    def read(self, split: TaskSplit) -> list[SentencePair]:
        path = split.files[0]
        if is_hf_file(path):
            return [pair for file in split.files for pair in _hf_pairs(file)]
        if ".tsv" in path.name:
            return [_tsv_pair(path, number, line) for number, line in numbered_lines(path)]
        first, second = path.name.removeprefix("tatoeba.").split(".")[0].split("-")
        pairs = parallel_lines(path, file_with_ending(path, first, second))
        return [SentencePair(first=one, second=other) for one, other in pairs]

    @override
    def score(
        self, examples: Sequence[SentencePair], predictions: Sequence[int], language: str
    ) -> dict[str, float]:
        """Share of first sides whose second side was found; an identical text counts as well."""
        found = [examples[prediction].second for prediction in predictions]
        return {"accuracy@1": accuracy([example.second for example in examples], found)}


class UserPairs(RetrievalTask):
    """Translations of your own: TSV files with two columns, named after their languages."""

    name = "retrieval"
    version = 2  # without pairs that have the same text in both languages
    languages = "any"
    summary = "the nearest sentence, on translations of your own (--pairs)"
    paper = ""
    license = "your own"
    layouts: ClassVar = (Layout("{language}-{other}.tsv", split="test"),)


class Tatoeba(RetrievalTask):
    """LASER's Tatoeba test (Artetxe and Schwenk 2019): 112 languages with English, <= 1,000 pairs.

    Swahili has 390 pairs, Thai 548, Urdu and most others 1,000. XTREME scores 36 of the languages,
    with the mean over all tokens of a layer and the cosine. The Hugging Face data set is XTREME's,
    with these 36 languages; its only split is called validation.
    """

    name = "tatoeba"
    languages = "112 with en"
    summary = "the nearest sentence in the other language"
    paper = "Artetxe and Schwenk 2019; Hu et al. 2020"
    license = "CC BY 2.0 FR"
    layouts: ClassVar = (
        Layout("tatoeba/{language}-{other}.tsv", split="test"),
        Layout("tatoeba/v1/tatoeba.{language}-{other}.{language}", split="test"),
        Layout("tatoeba/{language}-{other}.{language}", split="test"),
        *hf_layouts("xtreme", "tatoeba.{language}", test="validation", other="en"),
    )
    companions = (
        "tatoeba/v1/tatoeba.{language}-{other}.{other}",
        "tatoeba/{language}-{other}.{other}",
    )


def _tsv_pair(path: Path, number: int, line: str) -> SentencePair:
    cells = line.split("\t")
    if len(cells) != 2 or not all(cell.strip() for cell in cells):
        raise file_error(path, number, f"has {len(cells)} columns, two sentences are needed.")
    return SentencePair(first=cells[0], second=cells[1])


def _hf_pairs(path: Path) -> Iterator[SentencePair]:
    """The rows of XTREME's data set, whose sentences still have their line ends."""
    names = "source_sentence", "target_sentence"
    for row in hf_rows(path, *names):
        for name in names:
            row.text(name)
        first, second = (str(row[name]).rstrip("\r\n") for name in names)
        yield SentencePair(first=first, second=second)


class Bucc(FileTask[BitextEntry, tuple[int, int]]):
    """BUCC 2018 (Zweigenbaum et al.): de fr ru zh with English, up to 570,000 sentences a side.

    About 2 to 3 % of the sentences have a translation. The gold links of the test split are not
    public: as in the literature, the training split is the test split here and the sample is dev.
    Files are `de-en.training.de`, `.en` (`id TAB sentence`) and `.gold` (`id TAB id`) in a folder
    for the pair.
    """

    name = "bucc"
    languages = "de fr ru zh with en"
    summary = "translations among sentences without one"
    kind = "mining"
    version = 3  # repeated sentences and the threshold as in XTREME's script
    metrics = (Metric(name="f1"), Metric(name="precision"), Metric(name="recall"))
    paper = "Zweigenbaum et al. 2018"
    license = "research use only"
    layouts: ClassVar = (
        Layout("bucc2018/{language}-{other}/{language}-{other}.training.{language}", split="test"),
        Layout("bucc2018/{language}-{other}/{language}-{other}.sample.{language}", split="dev"),
    )
    # the test split has no gold links
    companions = ("bucc2018/{language}-{other}/{language}-{other}.*",)

    @override
    def read(self, split: TaskSplit) -> list[BitextEntry]:
        path = split.files[0]
        one, other = path.name.split(".")[0].split("-")
        gold_path = file_with_ending(path, one, "gold")
        first = _sentences_by_id(path)
        second = _sentences_by_id(file_with_ending(path, one, other))
        examples = []
        for number, line in numbered_lines(gold_path):
            ids = line.split("\t")
            if len(ids) != 2 or ids[0] not in first or ids[1] not in second:
                raise file_error(gold_path, number, f"{line!r} does not name two unused sentences.")
            examples.append(BitextEntry(first=first.pop(ids[0]), second=second.pop(ids[1])))
        examples += [BitextEntry(first=text, second=None) for text in first.values()]
        return examples + [BitextEntry(first=None, second=text) for text in second.values()]

    @override
    def score(
        self, examples: Sequence[BitextEntry], predictions: Sequence[tuple[int, int]], language: str
    ) -> dict[str, float]:
        """Over pairs; a pair is correct if both sides are of one entry."""
        pairs = set(predictions)
        right = sum(first == second for first, second in pairs)
        gold = sum(None not in (example.first, example.second) for example in examples)
        return f1_scores(right, num_predicted=len(pairs), num_gold=gold)


def _sentences_by_id(path: Path) -> dict[str, str]:
    found = {}
    for number, line in numbered_lines(path):
        name, tab, text = line.partition("\t")
        if not tab or not text.strip() or name in found:
            raise file_error(path, number, "is not a new id, a tab and a sentence.")
        found[name] = text
    return found
