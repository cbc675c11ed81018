"""Linking to entities: ranks of the right description among all candidates of a split.

A query is the state of a name's first [MASK] (all its tokens are masked), or a subject's
description; a candidate is a description in the other language:

    every layer        cosine of centered states; a description's state is the mean over its tokens
    without a layer    dot product of the trained heads (XLM-K Eq. 1 to 4), where the folder has
                       them; else as in the last layer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from isoglot.corpus.knowledge.link.tokenize import token_span
from isoglot.errors import IsoglotError
from isoglot.evaluation.embed import encode_in_batches, language_ids
from isoglot.evaluation.probing import ClozePrediction
from isoglot.objectives.contrast.descriptions import TrainedHeads
from isoglot.tasks.examples import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isoglot.evaluation.data import ScoringJob
    from isoglot.intervals import Measured
    from isoglot.results import Score
    from isoglot.tasks.examples import EntityQuery

OBJECTIVES = {"entity-linking": "entity", "object-entailment": "entailment"}
"""Task -> the objective that trains it."""
_BLOCK = 512
"""Queries that are compared with all candidates at a time."""


@torch.no_grad()
def score_linking(
    job: ScoringJob, *, on_prediction: Callable[[str, Fact, ClozePrediction], None] | None = None
) -> list[Score]:
    """Hits and mean reciprocal rank at every layer, and as the model delivers them.

    `on_prediction` is called with the language, each query as a fact, and the description that the
    model delivers.
    """
    linking = _Linking(job, job.examples())
    found: list[Score] = []
    values: dict[str, Measured] = {}
    for layer in range(len(linking.keys.means)):
        sides = [_centered(side) for side in linking.states(layer)]
        values = linking.values(linking.ranks(*sides))
        found += job.scores(values, layer=layer)
    heads = linking.heads()
    if heads is not None:
        sides = list(linking.projected(heads))
        values = linking.values(linking.ranks(*sides))
    if on_prediction is not None:
        for fact, prediction in linking.predictions(*sides):
            on_prediction(job.split.language, fact, prediction)
    return [*found, *job.scores(values)]


@dataclass(frozen=True, slots=True)
class _States:
    """(layers, n, D) states of sequences: at one place, and the mean over all tokens."""

    sites: Tensor
    means: Tensor


class _Linking:
    """The queries and candidates of one split, encoded."""

    def __init__(self, job: ScoringJob, examples: Sequence[EntityQuery]) -> None:
        self.job, self.examples = job, examples
        self.asked = [example for example in examples if example.text]
        if not self.asked:
            raise IsoglotError(f"{job.task.name} {job.split.language}: no example has a text.")
        self.of_facts = self.asked[0].relation is not None
        descriptions = {example.entity: example.description for example in examples}
        self.numbers = {entity: number for number, entity in enumerate(descriptions)}
        texts = list(descriptions.values())
        self.keys = self._encode([self._ids(text) for text in texts], [0] * len(texts), 1)
        masked = [self._masked(example) for example in self.asked]
        self.queries = self._encode([ids for ids, _ in masked], [site for _, site in masked], 0)

    def states(self, layer: int) -> tuple[Tensor, Tensor]:
        """The states of queries and candidates at a layer."""
        sites, means = self.queries.sites[layer], self.queries.means[layer]
        return means if self.of_facts else sites, self.keys.means[layer]

    def heads(self) -> TrainedHeads | None:
        """The trained heads, if the model folder has them."""
        head = self.job.heads.get(OBJECTIVES.get(self.job.task.name, ""))
        if head is None:
            return None
        if "classified" in head.settings:
            self.job.tell(
                "the model was trained to classify relations, and its heads rank nothing."
            )
            return None
        return TrainedHeads(head, self.job.encoder.hidden_size)

    def projected(self, heads: TrainedHeads) -> tuple[Tensor, Tensor]:
        """Queries and keys of the trained heads."""
        layer = -1 if heads.layer is None else heads.layer
        keys = (self.keys.means if heads.pooling == "mean" else self.keys.sites)[layer]
        if not self.of_facts:
            return heads.query(self.queries.sites[layer]), heads.key(keys)
        rows = {number: row for row, number in enumerate(heads.relation_numbers)}
        unknown = {one.relation for one in self.asked} - set(rows)
        if unknown:
            self.job.tell(
                f"{len(unknown)} relations were not trained (P{min(map(int, map(str, unknown)))}, "
                "...): the mean of the others stands for them."
            )
        assert heads.relations is not None
        mean = len(rows)
        heads.relations = torch.cat([heads.relations, heads.relations.mean(dim=0, keepdim=True)])
        relations = torch.tensor([rows.get(one.relation or 0, mean) for one in self.asked])
        subjects = (self.queries.means if heads.pooling == "mean" else self.queries.sites)[layer]
        return heads.query(subjects, relations), heads.key(keys)

    def ranks(self, queries: Tensor, keys: Tensor) -> list[float]:
        """The rank of each query's entity by dot product; equal candidates share a mean rank."""
        ranks: list[float] = []
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK]
            for scores, example in zip(block @ keys.T, self.asked[start:], strict=False):
                own = scores[self.numbers[example.entity]].clone()
                others = [self.numbers[e] for e in example.also if e in self.numbers]
                scores[others] = -torch.inf
                better, equal = int((scores > own).sum()), int((scores == own).sum())
                ranks.append(1 + better + max(equal - 1, 0) / 2)
        return ranks

    def predictions(self, queries: Tensor, keys: Tensor) -> Iterator[tuple[Fact, ClozePrediction]]:
        """Each query, and the description that is nearest to it by dot product.

        The margin is by how much the nearest other candidate is nearer than the right one.
        """
        described = list({e.entity: e.description for e in self.examples}.values())
        for query, example in zip(queries, self.asked, strict=True):
            scores, number = keys @ query, self.numbers[example.entity]
            own = float(scores[number])
            left = [number, *(self.numbers[e] for e in example.also if e in self.numbers)]
            scores[left] = -torch.inf
            other, best = scores.max(dim=0)
            margin = float(other) - own
            text = described[int(best)] if margin >= 0 else described[number]
            fact = Fact(
                id=example.entity,
                relation="" if example.relation is None else f"P{example.relation}",
                group="",
                prompt=_marked(example),
                answers=(described[number],),
            )
            yield fact, ClozePrediction(text, margin=margin if margin > -torch.inf else None)

    def values(self, ranks: Sequence[float]) -> dict[str, Measured]:
        """Metric -> score."""
        left = iter(ranks)
        return self.job.values(self.examples, [next(left) if e.text else 0 for e in self.examples])

    def _ids(self, text: str) -> list[int]:
        longest = self.job.encoder.max_positions
        ids: list[int] = self.job.tokenizer(text, truncation=True, max_length=longest)["input_ids"]
        return ids

    def _masked(self, example: EntityQuery) -> tuple[list[int], int]:
        """The ids of a query and the place that is read: the first [MASK] of its name."""
        if example.relation is not None:
            return self._ids(example.text), 0
        tokenizer = self.job.tokenizer
        # a long text is cut around its name later: `verbose` would warn of its length
        encoded = tokenizer(example.text, return_offsets_mapping=True, verbose=False)
        ids: list[int] = encoded["input_ids"]
        span = token_span(encoded["offset_mapping"], example.start, example.end)
        if span is None or tokenizer.mask_token_id is None:
            raise IsoglotError(
                f"{self.job.task.name} {self.job.split.language}: the tokenizer has no mask token, "
                f"or none of its tokens is in {example.text[example.start : example.end]!r}."
            )
        ids = [tokenizer.mask_token_id if span[0] <= n < span[1] else i for n, i in enumerate(ids)]
        return _window(ids, span[0], self.job.encoder.max_positions)

    def _encode(self, ids: list[list[int]], sites: list[int], side: int) -> _States:
        """The states of sequences at these places; `side` is that of their language."""
        job = self.job
        languages = language_ids(job.encoder, job.languages[side], len(ids), job.note)
        chosen: dict[int, Tensor] = {}
        means: dict[int, Tensor] = {}
        pad = job.tokenizer.pad_token_id
        for numbers, rows, states in encode_in_batches(job.encoder, ids, pad, languages=languages):
            assert states.layers is not None
            layers = torch.stack(list(states.layers)).float().cpu()
            for row, number in enumerate(numbers.tolist()):
                chosen[number] = layers[:, row, sites[number]]
                means[number] = layers[:, row, rows.sequences[row] >= 0].mean(dim=1)
        at, mean = ([found[n] for n in range(len(ids))] for found in (chosen, means))
        return _States(torch.stack(at, dim=1), torch.stack(mean, dim=1))


def _marked(example: EntityQuery) -> str:
    """The text with brackets around the mention, or with the relation after a subject."""
    if example.relation is not None:
        return f"{example.text} [P{example.relation}]"
    text, start, end = example.text, example.start, example.end
    return f"{text[:start]}[{text[start:end]}]{text[end:]}"


def _window(ids: list[int], site: int, longest: int) -> tuple[list[int], int]:
    """At most `longest` tokens around a place, the first and the last token kept."""
    if len(ids) <= longest:
        return ids, site
    inner = longest - 2
    begin = min(max(site - inner // 2, 1), len(ids) - 1 - inner)
    return [ids[0], *ids[begin : begin + inner], ids[-1]], site - begin + 1


def _centered(states: Tensor) -> Tensor:
    return F.normalize(states - states.mean(dim=0), dim=-1)
