"""What a model of the study knows: facts in a cloze, and whose description belongs to a name.

`facts` hides the object of every triple of the world and asks for it (P@1, open and among all
objects of the relation). `links` hides a name in a held-out page and looks for its entity's
description among those of all entities, in every other language (accuracy@1), in three ways:

    states   the states as they are, centered: the best layer, first token or mean
    fitted   after a linear map from names to descriptions, fitted on training pages (ridge), the
             same for every model
    heads    by the heads of masked entity prediction, where the model was trained with them
"""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from isoglot.batching.loader import open_streams
from isoglot.batching.streams import MentionStream
from isoglot.evaluation.embed import encode_in_batches
from isoglot.evaluation.probing import predict_objects
from isoglot.objectives.entity import MENTION, EntityPrediction
from isoglot.pretraining.checkpoints.checkpoint import Checkpoint
from isoglot.tasks.examples import OBJECT, Fact
from isoglot.tasks.lama import normalize_answer

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from isoglot.corpus import Corpus
    from isoglot.corpus.storage.shards import Split
    from isoglot.models.encoder import Encoder
    from isoglot.testbed import World
    from isoglot.types import Mention

MOST_MENTIONS = {"heldout": 200, "train": 400}
MOST_MASKS = 10
LONGEST = 36
"""Tokens of a context or description, as in the recipes."""
RIDGE = 10.0


def facts(encoder: Encoder, tokenizer: Any, world: World, language: str) -> dict[str, float]:
    """P@1 in one language, in percent: the mean over relations, open and typed."""
    asked = _facts(world, language)
    guesses = predict_objects(encoder, tokenizer, asked, max_masks=MOST_MASKS)
    right: dict[str, dict[str, list[bool]]] = {"open": {}, "typed": {}}
    for fact, guess in zip(asked, guesses, strict=True):
        answers = {normalize_answer(answer) for answer in fact.answers}
        right["open"].setdefault(fact.relation, []).append(normalize_answer(guess.text) in answers)
        right["typed"].setdefault(fact.relation, []).append(
            normalize_answer(guess.typed) in answers
        )
    return {kind: 100 * mean(map(mean, by.values())) for kind, by in right.items()}


def _facts(world: World, language: str) -> list[Fact]:
    clozes = list(world.cloze(language))
    names: dict[str, dict[str, None]] = {}
    answers: dict[tuple[str, str], dict[str, None]] = {}
    for cloze in clozes:
        names.setdefault(cloze.relation, {})[cloze.answer] = None
        answers.setdefault((cloze.relation, cloze.subject), {})[cloze.answer] = None
    return [
        Fact(
            id=str(number),
            relation=cloze.relation,
            group="testbed",
            prompt=cloze.text[: cloze.start] + OBJECT + cloze.text[cloze.end :],
            answers=tuple(answers[cloze.relation, cloze.subject]),
            candidates=tuple(names[cloze.relation]),
        )
        for number, cloze in enumerate(clozes)
    ]


class Names:
    """Hidden names of one language: their entities and (layers, n, D) states."""

    def __init__(self, encoder: Encoder, corpus: Corpus, mentions: list[Mention]) -> None:
        maker, rng = EntityPrediction(), np.random.default_rng(0)
        built = [maker.build(mention, corpus.vocabulary, rng)[0] for mention in mentions]
        sites = [int(sequence.markers[MENTION][0]) for sequence in built]
        ids = [sequence.ids.tolist() for sequence in built]
        self.states, _ = _states(encoder, corpus, ids, sites)
        self.entities = torch.tensor([mention.entity for mention in mentions])


@torch.no_grad()
def links(encoder: Encoder, corpus: Corpus, checkpoint: Path) -> dict[str, float]:
    """Accuracy@1 from names to descriptions, mean over pairs of languages, in percent."""
    keys = {code: _descriptions(encoder, corpus, code) for code in corpus.knowledge.languages}
    held_out = _names(encoder, corpus, "heldout")
    pairs = [(a, b) for a in held_out for b in held_out if a != b]
    layers = len(next(iter(held_out.values())).states)
    states = max(
        mean(
            _accuracy(
                _centered(held_out[a].states[layer]),
                _centered(keys[b][how][layer]),
                held_out[a].entities,
            )
            for a, b in pairs
        )
        for layer in range(1, layers)
        for how in (0, 1)
    )
    maps = {
        code: _fitted(names, [keys[b][1][-1] for b in keys if b != code])
        for code, names in _names(encoder, corpus, "train").items()
    }
    fitted = mean(
        _accuracy(maps[a](held_out[a].states[-1]), _centered(keys[b][1][-1]), held_out[a].entities)
        for a, b in pairs
    )
    scores = {"states": states, "fitted": fitted}
    heads = _heads(checkpoint)
    if heads is not None:
        query, key = heads
        scores["heads"] = mean(
            _accuracy(query(held_out[a].states[-1]), key(keys[b][1][-1]), held_out[a].entities)
            for a, b in pairs
        )
    return scores


def _names(encoder: Encoder, corpus: Corpus, split: Split) -> dict[str, Names]:
    """Mentions of a split, evenly spread, by language."""
    stream = MentionStream(objectives=("entity",), max_tokens=LONGEST)
    makers = {"entity": EntityPrediction()}
    (opened,) = open_streams(corpus, {"mentions": stream}, makers, row_length=128, split=split)
    found = {}
    for part in opened.slices:
        most = min(MOST_MENTIONS[split], part.num_examples)
        places = np.linspace(0, part.num_examples - 1, most)
        mentions: Any = [part.example(int(place), 0.0) for place in places]
        found[part.language] = Names(encoder, corpus, mentions)
    return found


def _descriptions(encoder: Encoder, corpus: Corpus, language: str) -> tuple[Tensor, Tensor]:
    """(layers, entities, D) the first and the mean state of every entity's description."""
    vocabulary, descriptions = corpus.vocabulary, corpus.knowledge.descriptions(language)
    ids = []
    for entity in range(corpus.knowledge.manifest.entities):
        tokens = descriptions[entity]
        assert tokens is not None, "the testbed describes everything in every language"
        ids.append([vocabulary.cls, *tokens[:LONGEST].tolist(), vocabulary.sep])
    return _states(encoder, corpus, ids, [0] * len(ids))


def _states(
    encoder: Encoder, corpus: Corpus, ids: list[list[int]], sites: list[int]
) -> tuple[Tensor, Tensor]:
    """(layers, n, D) the states at a site of each sequence, and the means over it."""
    chosen: dict[int, Tensor] = {}
    means: dict[int, Tensor] = {}
    for numbers, rows, states in encode_in_batches(encoder, ids, corpus.vocabulary.pad):
        assert states.layers is not None
        layers = torch.stack(list(states.layers)).float().cpu()
        for row, number in enumerate(numbers.tolist()):
            chosen[number] = layers[:, row, sites[number]]
            means[number] = layers[:, row, rows.sequences[row] >= 0].mean(dim=1)
    first, mean_ = ([found[n] for n in range(len(ids))] for found in (chosen, means))
    return torch.stack(first, dim=1), torch.stack(mean_, dim=1)


def _fitted(names: Names, keys: list[Tensor]) -> Any:
    """A ridge regression from names to their descriptions in the other languages, on average."""
    wanted = torch.stack([key - key.mean(dim=0) for key in keys]).mean(dim=0)[names.entities]
    states = names.states[-1]
    middle = states.mean(dim=0)
    given = states - middle
    penalty = RIDGE * torch.eye(given.shape[1])
    weights = torch.linalg.solve(given.T @ given + penalty, given.T @ wanted)
    return lambda more: (more - middle) @ weights


def _centered(states: Tensor) -> Tensor:
    return F.normalize(states - states.mean(dim=0), dim=-1)


def _accuracy(queries: Tensor, keys: Tensor, entities: Tensor) -> float:
    return 100 * float(((queries @ keys.T).argmax(dim=1) == entities).float().mean())


def _heads(checkpoint: Path) -> tuple[Any, Any] | None:
    """The query's and the key's head of masked entity prediction, if it was trained."""
    weights = Checkpoint(checkpoint).read()
    prefix = "objectives.entity."
    own = {name[len(prefix) :]: w for name, w in weights.items() if name.startswith(prefix)}
    if not own:
        return None

    def head(name: str) -> Any:
        first, second = (own[f"{name}.layers.{number}.weight"] for number in (0, 1))
        return lambda states: (states @ first.T).relu() @ second.T

    return head("query_head"), head("key_head")
