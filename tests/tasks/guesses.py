"""Predictions of all sorts for real questions and sentences: right, nearly right, wrong, empty."""

from __future__ import annotations

import random


def answers(questions, seed=0):
    """One prediction a question, in nine manners by turns."""
    rng = random.Random(seed)
    said = []
    for number, question in enumerate(questions):
        gold = rng.choice(question.answers).text if question.answers else ""
        words = question.context.split()
        start = rng.randrange(len(words))
        span = " ".join(words[start : start + rng.randint(1, 6)])
        manners = [
            gold,
            gold.upper(),
            f"The {gold}, ",
            gold[: max(1, len(gold) // 2)],
            f"{gold} {span}",
            span,
            "",
            f"«{gold}»، 、 .",
            " ".join(reversed(gold.split())),
        ]
        said.append(manners[number % len(manners)])
    return said


def tags(examples, seed=0):
    """Tags with faults: dropped, retyped, cut in two, I without B."""
    rng = random.Random(seed)
    known = sorted({tag for example in examples for tag in example.tags})
    said = []
    for example in examples:
        row = list(example.tags)
        for index in range(len(row)):
            if rng.random() < 0.15:
                row[index] = rng.choice(known)
        said.append(row)
    return said
