"""Object entailment: find the object's description from the subject's and the relation.

Reads a draw of the stream of triples: two descriptions in different languages. The state of the
subject's [CLS] and an embedding of the relation, added, must find the object's description. XLM-K
(Jiang et al., 2022), Object Entailment, Eq. 3 to 5.

    [CLS] a b c [SEP]     query: [CLS] + relation, W6·ReLU(W5·)
    [CLS] x y [SEP]       key: [CLS], W8·ReLU(W7·)

`loss: classify` is the paper's ablation without a contrast: name the relation from both [CLS].
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import CorpusError, require
from isoglot.objectives.base import Encoded, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast import Pooling, QueueConfig, info_nce
from isoglot.objectives.described import (
    DescriptionContrast,
    check_layer,
    check_queue,
    description,
    states_at,
)
from isoglot.types import IntArray, Sequence, Statement

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Vocabulary

SUBJECT, OBJECT = "subject", "object"
RELATION, ENTITY, KNOWN, NUMBER_KNOWN = "relation", "entity", "known", "number known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEntailment(Objective):
    """Settings of object entailment."""

    name: ClassVar[str] = "entailment"
    line: ClassVar[str] = "find an object's description from a subject's and their relation"
    reads: ClassVar[tuple[str, ...]] = ("triples",)
    paper: ClassVar[str] = "XLM-K"
    counts: ClassVar[str | None] = SUBJECT

    loss: Literal["contrast", "classify"] = "contrast"
    """Find the object among many, or name the relation of subject and object."""
    size: int | None = None
    """Width of the contrasted vectors; none means the encoder's."""
    pooling: Pooling = "cls"
    """A description's vector: the state of its first token, or the mean over all of its tokens."""
    layer: int | None = None
    """The layer whose states are read (0: the embeddings); none means the last."""
    normalize: bool = False
    """Bring the contrasted vectors to length 1; XLM-K does not."""
    temperature: float = 1.0
    """What dot products are divided by; XLM-K has none."""
    queue: QueueConfig = field(default_factory=QueueConfig)
    """Descriptions of earlier steps to be told apart from."""
    known_are_negatives: bool = False
    """Meet other objects that the relation is known to lead to; else they are left out."""

    def __post_init__(self) -> None:
        require(self.temperature > 0, "entailment.temperature must be above 0")
        require(self.size is None or self.size >= 1, "entailment.size must be 1 or more, or none")
        check_queue(self.name, self.queue)

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return sizes + 2

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Statement)
        labels = {
            RELATION: np.array([example.relation], np.int64),
            ENTITY: np.array([example.object_entity], np.int64),
            KNOWN: example.known,
            NUMBER_KNOWN: np.array([len(example.known)], np.int64),
        }
        languages = example.subject_language, example.object_language
        return (
            description(example.subject, languages[0], vocabulary, SUBJECT, **labels),
            description(example.object, languages[1], vocabulary, OBJECT),
        )

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        relations = corpus.knowledge.about.relations
        if not relations:
            raise CorpusError(
                f"{corpus.knowledge.folder}: has no relations, which {self.name!r} is about. "
                "Link Wikidata's claims too, or leave the objective out."
            )
        if self.loss == "classify":
            return RelationClassifier(self, encoder, relations)
        return ObjectContrast(self, encoder, relations)


class ObjectContrast(DescriptionContrast):
    """The model half: the relations' embeddings beside heads and queue."""

    def __init__(self, settings: ObjectEntailment, encoder: Encoder, relations: int) -> None:
        super().__init__(
            encoder,
            heads="paper",
            size=settings.size,
            queue=settings.queue,
            normalize=settings.normalize,
        )
        self.settings, self.layer = settings, settings.layer
        self.relations = nn.Embedding(relations, encoder.hidden_size)
        nn.init.normal_(self.relations.weight, std=encoder.model.config.initializer_range)

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        if SUBJECT not in encoded.batch.sites.get(encoded.name, {}):
            return self.nothing(encoded)
        labels = encoded.batch.labels[encoded.name]
        subjects = states_at(encoded, SUBJECT, self.settings.pooling)
        queries = self.query_head(subjects + self.relations(labels[RELATION]).to(subjects.dtype))
        keys = self.key_head(states_at(encoded, OBJECT, self.settings.pooling))
        entities = labels[ENTITY][:, None]
        others = self.candidates(keys, entities).without_same(entities)
        if not self.settings.known_are_negatives:
            known = known_among(labels[KNOWN], labels[NUMBER_KNOWN], others.items[:, 0])
            others = replace(others, left_out=others.left_out | known)
        found = info_nce(
            queries,
            keys,
            others.vectors,
            temperature=self.settings.temperature,
            left_out=others.left_out,
        )
        self.hold(keys, entities)
        return LossSum(total=found.losses.sum(), metrics={"accuracy": found.correct.sum()})


class RelationClassifier(ObjectiveModule):
    """The ablation: cross-entropy of the relation, from both descriptions side by side."""

    def __init__(self, settings: ObjectEntailment, encoder: Encoder, relations: int) -> None:
        super().__init__()
        self.layer, self.pooling = settings.layer, settings.pooling
        self.relations = nn.Linear(2 * encoder.hidden_size, relations)

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        if SUBJECT not in encoded.batch.sites.get(encoded.name, {}):
            nothing = encoded.losses.sum() * 0.0
            return LossSum(total=nothing, metrics={"accuracy": nothing.detach()})
        wanted = encoded.batch.labels[encoded.name][RELATION]
        both = torch.cat(
            [states_at(encoded, site, self.pooling) for site in (SUBJECT, OBJECT)], dim=1
        )
        with torch.autocast(both.device.type, enabled=False):
            scores = self.relations(both.to(torch.promote_types(both.dtype, torch.float32)))
            total = F.cross_entropy(scores, wanted, reduction="sum")
        correct = (scores.detach().argmax(dim=1) == wanted).sum().to(total.dtype)
        return LossSum(total=total, metrics={"accuracy": correct})


def known_among(known: Tensor, numbers: Tensor, items: Tensor) -> Tensor:
    """(n, m) true where candidate m is among the answers known for query n.

    A query may have a thousand answers and few of them are candidates: they are looked up in the
    sorted candidates, not compared with each.

    Args:
        known: the answers of all queries, query after query.
        numbers: (n,) how many each query has.
        items: (m,) what the candidates are.
    """
    ordered, order = items.sort(stable=True)
    first = torch.searchsorted(ordered, known)
    times = torch.searchsorted(ordered, known, right=True) - first
    owners = torch.arange(len(numbers), device=known.device).repeat_interleave(numbers)
    ends = times.cumsum(0)
    within = torch.arange(int(times.sum()), device=known.device)
    within = within - (ends - times).repeat_interleave(times)
    found = torch.zeros(len(numbers), len(items), dtype=torch.bool, device=known.device)
    found[owners.repeat_interleave(times), order[first.repeat_interleave(times) + within]] = True
    return found
