"""How near a word is to its translation in a model's embedding table (Table 2 of MLM-GC).

A word of several tokens is the mean of their rows. Beside the cosine of translations stands the
cosine of words that are none, without which the first says little.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.evaluation.word_vectors import csls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def word_translation_scores(model: Path, dictionaries: Sequence[Path]) -> dict[str, float]:
    """`cosine`, `others` and `p@1` (CSLS, in percent), means over files of two columns."""
    table = AutoModelForMaskedLM.from_pretrained(model).get_input_embeddings().weight.detach()
    tokenizer = AutoTokenizer.from_pretrained(model)
    values: dict[str, list[float]] = {"cosine": [], "others": [], "p@1": []}
    for file in dictionaries:
        rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        sides = []
        for side in zip(*rows, strict=True):
            pieces = tokenizer(list(side), add_special_tokens=False)["input_ids"]
            vectors = torch.stack([table[ids].mean(dim=0) for ids in pieces])
            sides.append(F.normalize(vectors, dim=-1))
        cosines = sides[0] @ sides[1].T
        diagonal = cosines.diagonal()
        values["cosine"].append(float(diagonal.mean()))
        others = (cosines.sum() - diagonal.sum()) / (cosines.numel() - len(diagonal))
        values["others"].append(float(others))
        # a word may stand in several lines: any of its translations is right
        right = set(map(tuple, rows))
        best = csls(cosines).argmax(dim=1).tolist()
        hits = [(row[0], rows[number][1]) in right for row, number in zip(rows, best, strict=True)]
        values["p@1"].append(100 * fmean(hits))
    return {name: fmean(found) for name, found in values.items()}
