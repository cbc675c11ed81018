from __future__ import annotations

from dataclasses import replace

import torch

from isoglot.finetune.classify import Classify
from isoglot.finetune.head import Piece
from isoglot.finetune.selection import Best
from isoglot.finetune.span import Answers
from isoglot.finetune.training import coupled_pieces, train
from isoglot.tasks.examples import Classified
from tests.finetune.tasks import questions

EXAMPLES = [
    Classified(id=str(i), first="kalo mitu " * (i % 3 + 1), label="xy"[i % 2]) for i in range(16)
]


def changes(folder, settings, tmp_path) -> dict[str, float]:
    """How far a training moves the embeddings and the head."""
    head = Classify(folder, settings, ["x", "y"])
    torch.manual_seed(0)
    model = head.open()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    best = Best(None, tmp_path, higher_is_better=True)
    pieces = head.pieces(EXAMPLES, training=True)
    train(model, head, pieces, [], settings, seed=0, scratch=tmp_path, best=best)
    moved = {n: float((w.detach() - before[n]).abs().max()) for n, w in model.named_parameters()}
    words = next(moved[name] for name in moved if "word_embeddings" in name)
    return {"words": words, "head": moved["classifier.out_proj.weight"]}


def test_layers_far_below_the_head_move_less(folder, settings, tmp_path):
    plain = changes(folder, settings, tmp_path)
    decayed = changes(folder, replace(settings, layer_decay=0.1), tmp_path)
    assert decayed["head"] > 0.5 * plain["head"]
    assert decayed["words"] < 0.01 * plain["words"]


def test_a_warm_up_that_never_ends_moves_little(folder, settings, tmp_path):
    plain = changes(folder, replace(settings, warmup=0), tmp_path)
    warming = changes(folder, replace(settings, warmup=1000), tmp_path)
    assert 0 < warming["words"] < 0.05 * plain["words"]


def test_couples_reach_the_model_in_one_batch(folder, settings, tmp_path, monkeypatch):
    settings = replace(settings, epochs=3)
    head = Classify(folder, settings, ["x", "y"])
    seen: list[list[int]] = []
    collate = head.collate

    def spying(pieces: list[Piece]):
        seen.append([piece.example for piece in pieces])
        return collate(pieces)

    monkeypatch.setattr(head, "collate", spying)
    couples = [(0, 9), (3, 4)]
    best = Best(None, tmp_path, higher_is_better=True)
    pieces = head.pieces(EXAMPLES, training=True)
    train(head.open(), head, pieces, couples, settings, seed=0, scratch=tmp_path, best=best)
    assert len(seen) == 3 * 4
    for first, second in couples:
        assert sum(first in batch and second in batch for batch in seen) == 3


def test_windows_are_coupled_as_far_as_both_examples_have_one(folder, settings):
    head = Answers(folder, settings, [])
    short, long = questions(1, length=8)[0], questions(1, length=60)[0]
    pieces = head.pieces([long, short, long, long], training=True)
    number = sum(piece.example == 0 for piece in pieces)
    assert number > 1
    assert sum(piece.example == 1 for piece in pieces) == 1
    found = coupled_pieces(pieces, [(0, 1), (2, 3)])
    assert [(pieces[a].example, pieces[b].example) for a, b in found] == [
        (0, 1),
        *[(2, 3)] * number,
    ]
    assert len({index for pair in found for index in pair}) == 2 * len(found)
