"""Compare the loss of one masked batch: transformers' own forward pass and Isoglot's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForMaskedLM

from isoglot.corpus import Corpus
from isoglot.models.encoder import Encoder
from isoglot.types import IGNORE, Rows

if TYPE_CHECKING:
    from pathlib import Path


def same_loss(model: Path, corpus_folder: Path, length: int, rows: int = 8) -> tuple[float, float]:
    """The mean loss of one batch in the precision of training: transformers', Isoglot's."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vocabulary = Corpus.open(corpus_folder).vocabulary
    generator = torch.Generator().manual_seed(0)
    size = (rows, length)
    original = torch.randint(10, vocabulary.size, size, generator=generator)
    masked = torch.rand(size, generator=generator) < 0.15
    ids = torch.where(masked, vocabulary.mask, original)
    labels = torch.where(masked, original, IGNORE)
    with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        theirs = AutoModelForMaskedLM.from_pretrained(model).to(device).eval()
        reference = theirs(input_ids=ids.to(device), labels=labels.to(device)).loss
        ours = Encoder.from_pretrained(str(model)).to(device).eval()
        zeros = torch.zeros(size, dtype=torch.long)
        packed = Rows(
            ids=ids,
            positions=torch.arange(length).expand(size),
            languages=zeros - 1,
            sentences=zeros,
            roles=zeros,
            rules=zeros,
            sequences=zeros,
        ).to(device)
        targets = masked.flatten().nonzero()[:, 0].to(device)
        found = ours.target_losses(
            ours(packed),
            targets,
            original.flatten().to(device)[targets],
            torch.ones_like(targets) * 1.0,
        )
    return float(reference), float(found.losses.mean())
