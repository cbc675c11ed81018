from __future__ import annotations

import logging

import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as options
from hypothesis import strategies as st

from isoglot.finetuning.tagging import TokenClassificationHead, first_tokens
from isoglot.tasks.examples import TaggedSentence
from isoglot.types import IGNORE
from tests.tiny_corpus import words

TAGS = ("B-LOC", "I-LOC", "O")


def tagged(lengths: list[int]) -> list[TaggedSentence]:
    lexicon = words("bb")
    return [
        TaggedSentence(
            id=str(i),
            words=tuple(lexicon[(7 * i + k) % 120] for k in range(n)),
            tags=tuple(TAGS[(i + k) % 3] for k in range(n)),
        )
        for i, n in enumerate(lengths)
    ]


def sure(pieces):
    """Logits of a model that says each piece's targets."""
    logits = []
    for piece in pieces:
        labels = torch.tensor(piece.targets["labels"])
        scores = torch.zeros(len(labels), len(TAGS))
        scores[labels != IGNORE, labels[labels != IGNORE]] = 1.0
        logits.append((scores,))
    return logits


@options(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_each_word_is_asked_once_however_long_the_sentence(folder, settings, lengths):
    examples = tagged(lengths)
    head = TokenClassificationHead(folder, settings, TAGS)
    pieces = head.windows(examples, training=True)
    assert all(len(piece.sequences[0]["input_ids"]) <= settings.max_length for piece in pieces)
    asked = sum(int((torch.tensor(piece.targets["labels"]) != IGNORE).sum()) for piece in pieces)
    assert asked == sum(lengths)
    assert head.decode(examples, pieces, sure(pieces)) == [example.tags for example in examples]


def test_only_a_words_first_piece_is_asked():
    assert first_tokens([None, 0, 0, 1, 3, 3, None]) == {0: 1, 1: 3, 3: 4}


def test_a_word_that_the_tokenizer_makes_nothing_of_is_outside(folder, settings):
    example = TaggedSentence(id="0", words=("kalo", "\u200b", "mitu"), tags=("B-LOC", "O", "B-LOC"))
    head = TokenClassificationHead(folder, settings, TAGS)
    pieces = head.windows([example], training=False)
    size = len(pieces[0].sequences[0]["input_ids"])
    always = torch.tensor([[1.0, 0.0, 0.0]]).expand(size, -1)
    (said,) = head.decode([example], pieces, [(always,)])
    assert len(said) == 3
    assert said[0] == said[2] == "B-LOC"


def test_a_sentence_that_is_split_is_no_warning_of_transformers(folder, settings):
    """Its tokenizer warns once of more tokens than positions: "will result in indexing errors"."""
    head = TokenClassificationHead(folder, settings, TAGS)
    head.tokenizer.model_max_length = settings.max_length
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        head.windows(tagged([200]), training=True)
    finally:
        logger.removeHandler(handler)
    assert said == []
