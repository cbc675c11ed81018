"""Entities in sequences of tags, and their F1, as conlleval and seqeval (default mode) count them.

Tags without a dash, parts of speech, are counted as seqeval 0.0.12 does, which XTREME used; 1.2
reads them in another way, and gives other numbers for them alone.

A tag is `O` or a letter and a type, `B-PER`. An entity starts at B or S, after an E or S, and where
the type changes; so `I-PER` after `O` starts one too, and IOB1 and IOB2 give the same entities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Entity(NamedTuple):
    """A typed stretch of words: `start` to `end`, both inside."""

    type: str
    start: int
    end: int


def entities(tags: Sequence[str]) -> set[Entity]:
    """The entities of one sentence.

    A tag without a dash is its own type, its first letter the prefix. That is how XTREME's script
    reads parts of speech, and why runs of one part of speech count once there.
    """
    found = set()
    start, before, type_before = 0, "O", ""
    for index, tag in enumerate([*tags, "O"]):
        prefix = tag[:1]
        type_ = tag.partition("-")[2] or tag
        goes_on = prefix not in "OBS" and before not in "OES" and type_ == type_before
        if before != "O" and not goes_on:
            found.add(Entity(type_before, start, index - 1))
        if not goes_on:
            start = index
        before, type_before = prefix, type_
    return found


def as_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """The same entities with a B at each one's start, wherever the tags have theirs."""
    found = ["O"] * len(tags)
    for type_, start, end in entities(tags):
        found[start : end + 1] = [f"B-{type_}", *[f"I-{type_}"] * (end - start)]
    return tuple(found)


def entity_scores(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> dict[str, float]:
    """Precision, recall and F1 over all entities; 0 where there is nothing to divide by."""
    right = number_gold = number_predicted = 0
    for true_tags, tags in zip(gold, predicted, strict=True):
        assert len(true_tags) == len(tags), "one tag for each word"
        true_entities, found = entities(true_tags), entities(tags)
        right += len(true_entities & found)
        number_gold += len(true_entities)
        number_predicted += len(found)
    precision = right / number_predicted if number_predicted else 0.0
    recall = right / number_gold if number_gold else 0.0
    both = precision + recall
    return {
        "f1": 2 * precision * recall / both if both else 0.0,
        "precision": precision,
        "recall": recall,
    }
