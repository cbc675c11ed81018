"""Object entailment: find the object's description from the subject's and the relation.

Reads a draw of the stream of triples: two descriptions in different languages. The state of the
subject's [CLS] plus an embedding of the relation must find the object's description. XLM-K (Jiang
et al., 2022), Object Entailment, Eq. 3 to 5.

    [CLS] a b c [SEP]     query: [CLS] + relation, W6·ReLU(W5·)
    [CLS] x y [SEP]       key: [CLS], W8·ReLU(W7·)

`loss: classify` is the paper's ablation without a contrast: predict the relation from both [CLS].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from isoglot.errors import CorpusError
from isoglot.models.objective_heads import ObjectiveHead
from isoglot.objectives.base import ForwardResult, LossSum, ObjectiveModule
from isoglot.objectives.compared import Compared
from isoglot.objectives.contrast.descriptions import (
    DescriptionContrast,
    DescriptionObjective,
    description_sequence,
)
from isoglot.objectives.contrast.info_nce import info_nce
from isoglot.objectives.contrast.pooling import check_layer, labels_of, pooled_states
from isoglot.types import Sequence, TripleExample

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.models.encoder import Encoder
    from isoglot.types import Example, Rng, Vocabulary

SUBJECT, OBJECT = "subject", "object"
RELATION, ENTITY = "relation", "entity"
KNOWN, NUM_KNOWN = "known objects", "number of known objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEntailment(DescriptionObjective):
    """Settings of object entailment."""

    name: ClassVar[str] = "entailment"
    summary: ClassVar[str] = "find an object's description from a subject's and their relation"
    reads: ClassVar[tuple[str, ...]] = ("triples",)
    paper: ClassVar[str] = "XLM-K"
    target_marker: ClassVar[str | None] = SUBJECT

    loss: Literal["contrast", "classify"] = "contrast"
    """Find the object among many, or predict the relation of subject and object."""
    allow_false_negatives: bool = False
    """Keep other objects of the same subject and relation as negatives; else they are excluded."""

    @override
    def compares_examples(self) -> bool:
        return self.loss == "contrast" and self.negatives == "micro_batch"

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, TripleExample)
        labels = {
            RELATION: np.array([example.relation], np.int64),
            ENTITY: np.array([example.object_entity], np.int64),
            KNOWN: example.known_objects,
            NUM_KNOWN: np.array([len(example.known_objects)], np.int64),
        }
        languages = example.subject_language, example.object_language
        return (
            description_sequence(example.subject, languages[0], vocabulary, SUBJECT, **labels),
            description_sequence(example.object, languages[1], vocabulary, OBJECT),
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        check_layer(self.name, self.layer, encoder)
        relations = corpus.knowledge.relations["relation"].tolist()
        if not relations:
            raise CorpusError(
                f"{corpus.knowledge.folder} has no relations, which {self.name!r} reads. "
                "Link Wikidata's claims too, or remove the objective."
            )
        if self.loss == "classify":
            return RelationClassifier(self, encoder, relations)
        return ObjectContrast(self, encoder, relations)


class ObjectContrast(DescriptionContrast):
    """The model half: embeddings of the relations, two heads and a queue."""

    def __init__(self, settings: ObjectEntailment, encoder: Encoder, relations: list[int]) -> None:
        """`relations` are P numbers; the n-th has row n of the embeddings."""
        super().__init__(settings, encoder)
        self.settings = settings
        self._head_settings["relations"] = relations
        self.relations = nn.Embedding(len(relations), encoder.hidden_size)
        nn.init.normal_(self.relations.weight, std=encoder.model.config.initializer_range)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        if SUBJECT not in result.batch.markers.get(result.name, {}):
            return self.empty_loss(result)
        return super().loss(result)

    @override
    def compared(self, result: ForwardResult) -> Compared:
        relations, entities, known, num_known = labels_of(
            result, RELATION, ENTITY, KNOWN, NUM_KNOWN
        )
        subjects, objects = pooled_states(result, SUBJECT, OBJECT, how=self.settings.pooling)
        return Compared(
            states={SUBJECT: subjects, OBJECT: objects},
            shared={RELATION: relations, ENTITY: entities[:, None]},
            local={KNOWN: known, NUM_KNOWN: num_known},
        )

    @override
    def step_loss(self, examples: Compared) -> LossSum:
        subjects, relations = (
            examples.of_own(rows) for rows in (examples.states[SUBJECT], examples.shared[RELATION])
        )
        queries = self.query_head(subjects + self.relations(relations).to(subjects.dtype))
        keys = self.key_head(examples.states[OBJECT])
        entities = examples.shared[ENTITY]
        negatives = self.negatives(keys, entities, examples.own)
        negatives = negatives.excluding_same(examples.of_own(entities))
        if not self.settings.allow_false_negatives:
            known = known_among(
                examples.local[KNOWN], examples.local[NUM_KNOWN], negatives.items[:, 0]
            )
            negatives = replace(negatives, excluded=negatives.excluded | known)
        found = info_nce(
            queries, examples.of_own(keys), negatives, temperature=self.settings.temperature
        )
        self.hold(keys, entities, examples)
        return LossSum(total=found.losses.sum(), metrics=found.metrics())


class RelationClassifier(ObjectiveModule):
    """The ablation: cross-entropy of the relation, from the concatenated descriptions."""

    def __init__(self, settings: ObjectEntailment, encoder: Encoder, relations: list[int]) -> None:
        super().__init__()
        self.layer, self.pooling = settings.layer, settings.pooling
        self._numbers = relations
        self.relations = nn.Linear(2 * encoder.hidden_size, len(relations))

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        if SUBJECT not in result.batch.markers.get(result.name, {}):
            return result.empty_loss()
        targets = result.batch.labels[result.name][RELATION]
        both = torch.cat(pooled_states(result, SUBJECT, OBJECT, how=self.pooling), dim=1)
        with torch.autocast(both.device.type, enabled=False):
            scores = self.relations(both.to(torch.promote_types(both.dtype, torch.float32)))
            total = F.cross_entropy(scores, targets, reduction="sum")
        correct = (scores.detach().argmax(dim=1) == targets).sum().to(total.dtype)
        return LossSum(total=total, metrics={"accuracy": correct})

    @override
    def exported_head(self) -> ObjectiveHead:
        told = {"layer": self.layer, "pooling": self.pooling, "classified": self._numbers}
        return ObjectiveHead(told, dict(self.state_dict()))


def known_among(known: Tensor, counts: Tensor, items: Tensor) -> Tensor:
    """(n, m) true where candidate m, with item number items[m], is a known object of query n.

    `known` lists the known objects of all queries, `counts` has their number (n,). A query may have
    a thousand, of which few are candidates: they are looked up in the sorted candidates.
    """
    ordered, order = items.sort(stable=True)
    first = torch.searchsorted(ordered, known)
    times = torch.searchsorted(ordered, known, right=True) - first
    owners = torch.arange(len(counts), device=known.device).repeat_interleave(counts)
    ends = times.cumsum(0)
    within = torch.arange(int(times.sum()), device=known.device)
    within = within - (ends - times).repeat_interleave(times)
    found = torch.zeros(len(counts), len(items), dtype=torch.bool, device=known.device)
    found[owners.repeat_interleave(times), order[first.repeat_interleave(times) + within]] = True
    return found
