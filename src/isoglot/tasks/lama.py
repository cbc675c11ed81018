"""LAMA: what does a masked language model know of facts? In English, from four corpora."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from isoglot.tasks.examples import Fact
from isoglot.tasks.facts import OBJECT, FactTask, filled
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.hub import hub_config, hub_rows, is_hub_file
from isoglot.tasks.lines import cell, damaged, json_lines
from isoglot.tasks.parallel import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isoglot.tasks.base import Part

_GOOGLE_RE = {
    "place_of_birth": "[X] was born in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
    "place_of_death": "[X] died in [Y] .",
}
"""LAMA keeps these three templates in its code."""
_CONFIGS = {
    "conceptnet": "ConceptNet",
    "google_re": "Google_RE",
    "squad": "Squad",
    "trex": "TREx",
}
"""LAMA's folders by the configs of its dataset."""
_MOST_WORDS = 100


class Lama(FactTask):
    """LAMA (Petroni et al. 2019), four corpora of facts. CC BY-NC 4.0.

    The paper counts 5,527 facts of Google-RE, 34,039 of T-REx, 11,458 of ConceptNet and 305 of
    SQuAD; ConceptNet's file has 29,774 lines. LAMA's script leaves out what is left out here: facts
    of Google-RE that more judges deny than confirm, a subject and object that the relation has
    already, and sentences of ConceptNet and SQuAD with over 100 words.

    The folder is LAMA's own `data`: `Google_RE/place_of_birth_test.jsonl`, `TREx/P19.jsonl` with
    the templates in `relations.jsonl`, `ConceptNet/test.jsonl`, `Squad/test.jsonl`. ConceptNet and
    SQuAD count as one relation each, as in LAMA. Asked with one mask, as LAMA does: facts whose
    object is not one token of the model are left out, so that the count of a score depends on the
    vocabulary.

    The dataset's one part is called train, in each of its four configs.
    """

    name = "lama"
    version = 3  # facts that LAMA's script leaves out
    masks = 1
    languages = "en"
    line = "facts as cloze sentences, English"
    paper = "Petroni et al. 2019; XLM-K, Table 5"
    licence = "CC BY-NC 4.0"
    layouts: ClassVar = (
        Layout("lama/data/*/*.jsonl", ("en",), "test"),
        Layout("LAMA/data/*/*.jsonl", ("en",), "test"),
        *hub("lama", "*", ("en",), test="train"),
    )

    @override
    def read(self, part: Part) -> list[Fact]:
        facts: list[Fact] = []
        for corpus, of_corpus in groupby(part.files, key=_corpus):
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
                    raise damaged(files[0], 1, f"LAMA has no corpus {other}.")
        return facts


class _Relation(NamedTuple):
    name: str
    group: str
    template: str


_Rows = Iterator[tuple[int, dict[str, Any], _Relation]]


def _corpus(path: Path) -> str:
    """The corpus of a file, by the name of its folder."""
    if not is_hub_file(path):
        return path.parent.name
    config = hub_config(path)
    return _CONFIGS.get(config, config)


def _google_re(path: Path) -> _Rows:
    """The rows of a file of Google-RE, each with its relation."""
    if is_hub_file(path):
        for number, row in hub_rows(path, "pred", "judgments", "sub_label", "obj_label"):
            name = cell(path, number, row, "pred").rpartition("/")[2]
            yield number, row, _of_google_re(path, number, name)
        return
    relation = _of_google_re(path, 1, path.name.split(".")[0].removesuffix("_test"))
    for number, row in json_lines(path):
        yield number, row, relation


def _of_google_re(path: Path, number: int, name: str) -> _Relation:
    template = _GOOGLE_RE.get(name)
    if template is None:
        raise damaged(path, number, f"LAMA has no relation {name}.")
    return _Relation(name, f"Google-RE {name}", template)


def _trex(path: Path) -> _Rows:
    """The rows of a file of T-REx, each with its relation."""
    if is_hub_file(path):
        needed = "predicate_id", "type", "template"
        for number, row in hub_rows(path, *needed, "sub_label", "obj_label"):
            name, kind, template = (cell(path, number, row, column) for column in needed)
            yield number, row, _Relation(name, f"T-REx {kind}", template)
        return
    name = path.name.split(".")[0]
    relations = _relations(path)
    if name not in relations:
        raise damaged(path, 1, f"relations.jsonl has no relation {name}.")
    for number, row in json_lines(path):
        yield number, row, relations[name]


def _relations(path: Path) -> dict[str, _Relation]:
    """The relations of T-REx with their kinds (1-1, N-1, N-M), from the file that lies above."""
    file = beside(path.parent, "relations.jsonl")
    return {
        name: _Relation(
            name,
            f"T-REx {cell(file, number, row, 'type')}",
            cell(file, number, row, "template"),
        )
        for number, row in json_lines(file)
        for name in [cell(file, number, row, "relation")]
    }


def _templated(files: Sequence[Path], read: Callable[[Path], _Rows]) -> list[Fact]:
    """Facts by relation: each subject and object once, unless most judges deny it."""
    facts: dict[tuple[str, str, str], Fact] = {}
    for path in files:
        for number, row, relation in read(path):
            if _denied(path, number, row):
                continue
            subject = cell(path, number, row, "sub_label")
            said = cell(path, number, row, "obj_label")
            key = relation.name, subject, said
            if key in facts:  # a dataset folder has a row for each sentence of a fact
                continue
            facts[key] = Fact(
                id=str(row.get("uuid") or f"{relation.name}-{number}"),
                relation=relation.name,
                group=relation.group,
                prompt=filled(relation.template, subject),
                answers=(said,),
            )
    return sorted(facts.values(), key=lambda fact: fact.relation)


def _denied(path: Path, number: int, row: dict[str, Any]) -> bool:
    """Do more judges deny a fact than confirm it? Only Google-RE's facts were judged."""
    try:
        judgments = row.get("judgments", ())
        if isinstance(judgments, str):  # a dataset folder has the list as Python prints it
            judgments = literal_eval(judgments)
        said = [judged["judgment"] == "yes" for judged in judgments]
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise damaged(
            path, number, f"its judgments are not a list of yes and no ({error})."
        ) from error
    return said.count(False) > said.count(True)


def _sentences(files: Sequence[Path], corpus: str) -> list[Fact]:
    found = [
        Fact(
            id=str(row.get("uuid") or row.get("id") or f"{corpus}-{number}"),
            relation=corpus,
            group=corpus,
            prompt=_cloze(path, number, row),
            answers=(cell(path, number, row, "obj_label"),),
        )
        for path in files
        for number, row in _sentence_rows(path)
    ]
    return [fact for fact in found if len(fact.prompt.split()) <= _MOST_WORDS]


def _sentence_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_hub_file(path):
        return hub_rows(path, "masked_sentence", "obj_label")
    return json_lines(path)


def _cloze(path: Path, number: int, row: dict[str, Any]) -> str:
    sentences = row.get("masked_sentences") or [row.get("masked_sentence") or ""]
    text = " ".join(map(str, sentences))
    if text.count("[MASK]") != 1:
        raise damaged(path, number, "its masked sentences do not have one [MASK].")
    return text.replace("[MASK]", OBJECT)
