"""Cloze probing of facts: the base class of its tasks, and LAMA, in English from four corpora."""

from __future__ import annotations

import unicodedata
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.tasks.base import Metric, TaskSplit
from isoglot.tasks.data_files import (
    Row,
    file_beside,
    file_error,
    hf_config_name,
    hf_rows,
    is_hf_file,
    json_lines,
    read_rows,
)
from isoglot.tasks.examples import OBJECT, Fact
from isoglot.tasks.layouts import FileTask, Layout, hf_layouts

if TYPE_CHECKING:
    from pathlib import Path


class ClozeTask(FileTask[Fact, str]):
    """Precision at one of each relation, averaged over relations as in LAMA.

    `p@1` is the mean over all relations, `p@1 T-REx` over those of a corpus, `p@1 T-REx N-1` over
    those of a kind. Case and surrounding spaces do not count.
    """

    kind = "probe"
    version = 1
    metrics = (Metric(name="p@1"),)
    max_masks: ClassVar[int] = 5
    """The most tokens of an answer, unless `FeatureConfig.max_masks` is set."""

    @override
    def score(
        self, examples: Sequence[Fact], predictions: Sequence[str], language: str
    ) -> dict[str, float]:
        right: dict[tuple[str, str], list[bool]] = {}
        for fact, predicted in zip(examples, predictions, strict=True):
            answers = {normalize_answer(answer) for answer in fact.answers}
            right.setdefault((fact.group, fact.relation), []).append(
                normalize_answer(predicted) in answers
            )
        means = {key: sum(found) / len(found) for key, found in right.items()}
        groups: dict[str, list[float]] = {"p@1": list(means.values())}
        for (group, _), mean in means.items():
            for name in dict.fromkeys((group.split(" ")[0], group)):
                groups.setdefault(f"p@1 {name}", []).append(mean)
        return {name: sum(values) / len(values) for name, values in groups.items() if values}


def normalize_answer(text: str) -> str:
    """The form in which names are compared: NFC, without case and surrounding spaces."""
    return unicodedata.normalize("NFC", text).strip().casefold()


def fill_template(template: str, subject: str) -> str:
    """The prompt of a template for one subject; `OBJECT` stays in it."""
    return template.replace("[X]", subject).strip()


def fact_of_row(row: Row, relation: str, group: str, template: str) -> Fact:
    """The fact of a row in LAMA's format."""
    return Fact(
        id=str(row.get("uuid") or f"{relation}-{row.number}"),
        relation=relation,
        group=group,
        prompt=fill_template(template, row.text("sub_label")),
        answers=(row.text("obj_label"),),
    )


_GOOGLE_RE = {
    "place_of_birth": "[X] was born in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
    "place_of_death": "[X] died in [Y] .",
}
"""Templates that LAMA has in its code."""
_CONFIGS = {"conceptnet": "ConceptNet", "google_re": "Google_RE", "squad": "Squad", "trex": "TREx"}
"""Config of the Hugging Face data set -> folder of LAMA's distribution."""
_MAX_WORDS = 100


class Lama(ClozeTask):
    """LAMA (Petroni et al. 2019), four corpora of facts.

    The paper counts 5,527 facts of Google-RE, 34,039 of T-REx, 11,458 of ConceptNet and 305 of
    SQuAD; ConceptNet's file has 29,774 lines. As in LAMA's script, these are left out: facts of
    Google-RE that more judges deny than confirm, repeated pairs of subject and object of a
    relation, and sentences of ConceptNet and SQuAD with over 100 words.

    The folder is LAMA's own `data`: `Google_RE/place_of_birth_test.jsonl`, `TREx/P19.jsonl` with
    the templates in `relations.jsonl`, `ConceptNet/test.jsonl`, `Squad/test.jsonl`. ConceptNet and
    SQuAD count as one relation each, as in LAMA. Probed with one mask, as in LAMA: facts whose
    object is not one token of the model are left out, so the number of facts depends on the
    vocabulary. The only split of the Hugging Face data set is called train, in each of its four
    configs.
    """

    name = "lama"
    version = 3  # facts that LAMA's script leaves out
    max_masks = 1
    languages = "en"
    summary = "facts as cloze sentences, English"
    paper = "Petroni et al. 2019; XLM-K, Table 5"
    license = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("lama/data/*/*.jsonl", ("en",), "test"),
        Layout("LAMA/data/*/*.jsonl", ("en",), "test"),
        *hf_layouts("lama", "*", ("en",), test="train"),
    )
    companions = ("lama/data/relations.jsonl", "LAMA/data/relations.jsonl")

    @override
    def read(self, split: TaskSplit) -> list[Fact]:
        facts: list[Fact] = []
        for corpus, of_corpus in groupby(split.files, key=_corpus):
            files = tuple(of_corpus)
            match corpus:
                case "Google_RE":
                    facts += _templated(files, _google_re)
                case "TREx":
                    facts += _templated(files, _trex)
                case "ConceptNet":
                    facts += _sentences(files, "ConceptNet")
                case "Squad":
                    facts += _sentences(files, "SQuAD")
                case other:
                    raise file_error(files[0], 1, f"LAMA has no corpus {other}.")
        return facts


class _Relation(NamedTuple):
    name: str
    group: str
    template: str


_Rows = Iterator[tuple[Row, _Relation]]


def _corpus(path: Path) -> str:
    """The corpus of a file: the name of its folder."""
    if not is_hf_file(path):
        return path.parent.name
    config = hf_config_name(path)
    return _CONFIGS.get(config, config)


def _google_re(path: Path) -> _Rows:
    """The rows of a Google-RE file, each with its relation."""
    name = path.name.split(".")[0].removesuffix("_test")
    columns = "pred", "judgments", "sub_label", "obj_label"
    for row in read_rows([path], hf_columns=columns):
        if is_hf_file(path):
            name = row.text("pred").rpartition("/")[2]
        if name not in _GOOGLE_RE:
            raise row.error(f"LAMA has no relation {name}.")
        yield row, _Relation(name, f"Google-RE {name}", _GOOGLE_RE[name])


def _trex(path: Path) -> _Rows:
    """The rows of a T-REx file, each with its relation and its kind (1-1, N-1, N-M)."""
    if is_hf_file(path):
        needed = "predicate_id", "type", "template"
        for row in hf_rows(path, *needed, "sub_label", "obj_label"):
            name, kind, template = (row.text(column) for column in needed)
            yield row, _Relation(name, f"T-REx {kind}", template)
        return
    name = path.name.split(".")[0]
    rows = json_lines(file_beside(path.parent, "relations.jsonl"))
    relations = {row.text("relation"): (row.text("type"), row.text("template")) for row in rows}
    if name not in relations:
        raise file_error(path, 1, f"relations.jsonl has no relation {name}.")
    kind, template = relations[name]
    for row in json_lines(path):
        yield row, _Relation(name, f"T-REx {kind}", template)


def _templated(files: Sequence[Path], read: Callable[[Path], _Rows]) -> list[Fact]:
    """Facts sorted by relation; each subject and object once, without facts that judges deny."""
    facts: dict[tuple[str, str, str], Fact] = {}
    for path in files:
        for row, relation in read(path):
            if _denied(row):
                continue
            key = relation.name, row.text("sub_label"), row.text("obj_label")
            if key not in facts:  # a Hugging Face data set has a row for each sentence of a fact
                facts[key] = fact_of_row(row, *relation)
    return sorted(facts.values(), key=lambda fact: fact.relation)


def _denied(row: Row) -> bool:
    """Whether more judges deny a fact than confirm it; only Google-RE's facts were judged."""
    try:
        judgments = row.get("judgments", ())
        if isinstance(judgments, str):  # a Hugging Face data set has the list as a Python literal
            judgments = literal_eval(judgments)
        confirmed = [judged["judgment"] == "yes" for judged in judgments]
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise row.error(f"its judgments are not a list of yes and no ({error}).") from error
    return confirmed.count(False) > confirmed.count(True)


def _sentences(files: Sequence[Path], corpus: str) -> list[Fact]:
    found = [
        Fact(
            id=str(row.get("uuid") or row.get("id") or f"{corpus}-{row.number}"),
            relation=corpus,
            group=corpus,
            prompt=_cloze(row),
            answers=(row.text("obj_label"),),
        )
        for row in read_rows(files, hf_columns=("masked_sentence", "obj_label"))
    ]
    return [fact for fact in found if len(fact.prompt.split()) <= _MAX_WORDS]


def _cloze(row: Row) -> str:
    sentences = row.get("masked_sentences") or [row.get("masked_sentence") or ""]
    text = " ".join(map(str, sentences))
    if text.count("[MASK]") != 1:
        raise row.error("its masked sentences do not have one [MASK].")
    return text.replace("[MASK]", OBJECT)
