"""Held-out facts as a score: a cloze in one language finds the object's name in another.

The object of a fact is masked in its sentence ("Paris is the capital of [MASK].") in language A.
Candidates are up to 200 objects of the same relation by their names alone in language B, without
other known objects of the same subject. The vectors of clozes and of names, each less the mean of
its relation and language, are compared by cosine: accuracy@1 in percent, the mean over all pairs of
two different languages. Layer and pooling of the cloze (its mean state, or that of the mask) are
chosen on development facts.

States are compared rather than probabilities of the LM head, for two reasons. An arm that has
read such sentences under MLM knows their wording, and its head would be better at them whatever
it knows. And the head says nothing about another language. A model that was never trained for this
can be above chance, as what a name reveals (its language or region) is in the states of both sides.
No fact that is scored is told in the knowledge of training (`knowledge.py`); the checkpoint's text
may tell some, the same to all arms.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.claims.pooling import own_tokens, pooled_layers
from isoglot.tasks.examples import OBJECT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

POOLINGS = ("mean", "mask")
"""Of a cloze; a name has the mean of its states."""


@dataclass(frozen=True, slots=True)
class Question:
    """A held-out fact."""

    relation: str
    object: str
    also: tuple[str, ...]
    """Other objects of the same subject, which are no candidates."""
    clozes: dict[str, str]
    """Language -> the sentence with `[Y]` for its object."""


class Names:
    """The candidates of each relation, and their vectors in every language."""

    def __init__(
        self, encoder: Any, tokenizer: Any, folder: Path, languages: int | None = None
    ) -> None:
        """`languages`: the first ones alone."""
        self.names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
        self.of: dict[str, list[str]] = json.loads(
            (folder / "candidates.json").read_text(encoding="utf-8")
        )
        self.languages = tuple(next(iter(self.names.values())))[:languages]
        self._rows = {entity: row for row, entity in enumerate(self.names)}
        self._states = {
            code: name_states(
                encoder, tokenizer, [told[code] for told in self.names.values()], code
            )
            for code in self.languages
        }

    def states(self, relation: str, language: str) -> Tensor:
        """(layers, candidates, D)."""
        return self._states[language][:, [self._rows[entity] for entity in self.of[relation]]]

    def also(self, relation: str, questions: Sequence[Question]) -> Tensor:
        """(questions, candidates) candidates that are other objects of a question's subject."""
        import torch

        return torch.tensor(
            [[one in asked.also for one in self.of[relation]] for asked in questions]
        )

    def told(self, relation: str, language: str) -> list[str]:
        """The names of a relation's candidates."""
        return [self.names[entity][language] for entity in self.of[relation]]


def read_questions(file: Path, limit: int | None = None) -> dict[str, list[Question]]:
    """Relation -> its held-out facts; `limit`: the first lines of the file."""
    found = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines()[:limit]:
        said = json.loads(line)
        found[said["relation"]].append(
            Question(said["relation"], said["object"], tuple(said["also"]), said["clozes"])
        )
    return found


def name_states(encoder: Any, tokenizer: Any, names: Sequence[str], language: str) -> Tensor:
    """(layers, names, D) mean states without special tokens."""
    poolings = {"mean": own_tokens(tokenizer)}
    return pooled_layers(encoder, tokenizer, names, poolings, language)["mean"].cpu()


def cloze_states(
    encoder: Any, tokenizer: Any, clozes: Sequence[str], language: str
) -> dict[str, Tensor]:
    """Pooling -> (layers, clozes, D); a cloze that was cut before its mask has a zero vector."""
    texts = [cloze.replace(OBJECT, tokenizer.mask_token) for cloze in clozes]
    poolings = {
        "mean": lambda rows: rows.sequences >= 0,
        "mask": lambda rows: rows.ids == tokenizer.mask_token_id,
    }
    found = pooled_layers(encoder, tokenizer, texts, poolings, language)
    return {pooling: states.cpu() for pooling, states in found.items()}


def accuracies(
    encoder: Any, tokenizer: Any, names: Names, file: Path, limit: int | None = None
) -> dict[tuple[str, int], list[float]]:
    """(pooling, layer) -> accuracy@1 of each pair of languages in percent."""
    hits: dict[tuple[str, int], dict[tuple[str, str], list[bool]]] = defaultdict(
        lambda: defaultdict(list)
    )
    asked = read_questions(file, limit)
    also = {relation: names.also(relation, questions) for relation, questions in asked.items()}
    for code in names.languages:
        clozes = [one.clozes[code] for questions in asked.values() for one in questions]
        states, start = cloze_states(encoder, tokenizer, clozes, code), 0
        for relation, questions in asked.items():
            end = start + len(questions)
            own = {pooling: of[:, start:end] for pooling, of in states.items()}
            start = end
            for other in names.languages:
                if other != code:
                    found = _hits(own, names, questions, also[relation], other)
                    for choice, values in found.items():
                        hits[choice][code, other] += values
    return {
        choice: [100 * fmean(by_pair[pair]) for pair in permutations(names.languages, 2)]
        for choice, by_pair in hits.items()
    }


def _hits(
    states: dict[str, Tensor],
    names: Names,
    questions: list[Question],
    also: Tensor,
    language: str,
) -> dict[tuple[str, int], list[bool]]:
    """(pooling, layer) -> whether each question of a relation finds its object's name."""
    import torch
    import torch.nn.functional as F

    relation = questions[0].relation
    told = names.told(relation, language)
    # entities of one name are one answer
    number = {name: place for place, name in enumerate(dict.fromkeys(told))}
    answers = torch.tensor([number[name] for name in told])
    right = torch.tensor([number[names.names[one.object][language]] for one in questions])
    keys = names.states(relation, language)
    keys = F.normalize(keys - keys.mean(dim=1, keepdim=True), dim=-1)
    found = {}
    for pooling, queries in states.items():
        centered = F.normalize(queries - queries.mean(dim=1, keepdim=True), dim=-1)
        cosines = (centered @ keys.mT).masked_fill(also, -torch.inf)
        hits = answers[cosines.argmax(dim=-1)] == right
        for layer, of_layer in enumerate(hits.tolist()):
            found[pooling, layer] = of_layer
    return found


def chance(names: Names, file: Path) -> float:
    """Accuracy@1 of guessing among the candidates, in percent."""
    asked = [one for questions in read_questions(file).values() for one in questions]
    return 100 * fmean(
        1 / (len(names.of[one.relation]) - len({*one.also} & {*names.of[one.relation]}))
        for one in asked
    )


def fact_scores(
    encoder: Any, tokenizer: Any, tests: Path, limit: int | None = None
) -> dict[str, Any]:
    """The score `facts`, and how it was chosen; nothing where the tests have no facts."""
    from benchmarks.claims.scores import best

    folder = tests / "facts"
    if not folder.is_dir():
        return {"details": {}}
    names = Names(encoder, tokenizer, folder, None if limit is None else 2)
    development = accuracies(encoder, tokenizer, names, folder / "dev.jsonl", limit)
    chosen = best(development)
    found = accuracies(encoder, tokenizer, names, folder / "test.jsonl", limit)
    return {
        "facts": fmean(found[chosen]),
        "development": {"facts": fmean(development[chosen])},
        "details": {
            "facts chosen": f"{chosen[0]}, layer {chosen[1]}",
            "facts chance": chance(names, folder / "test.jsonl"),
        },
    }
