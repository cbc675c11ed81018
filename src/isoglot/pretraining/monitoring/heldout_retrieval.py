"""Retrieval on held-out pairs while training: is the nearest sentence the translation?

Both sides of each pair are encoded by themselves and pooled as the stage's contrastive objective
does (else by the mean of the last layer); accuracy@1 by cosine, the mean of both directions, among
at most `logging.validate_examples` pairs of a language pair. Chance is 1 / number of pairs; pairs
are few, so it shows the direction of a run, not a score to report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from isoglot.batching.builder import RowBuffer
from isoglot.batching.loader import open_streams
from isoglot.batching.mixture import evenly_spaced
from isoglot.batching.streams import ParallelStream
from isoglot.batching.streams.base import OverlongError
from isoglot.models.sharding import reshard, runs_together
from isoglot.objectives.contrast.pooling import ContrastObjective, pool
from isoglot.objectives.masking import build_sequence
from isoglot.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from isoglot.batching.streams.base import LanguageSlice
    from isoglot.objectives.contrast.pooling import Pooling
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.config import StageConfig
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.types import IntArray, Rows

_UNSWAPPED = 0.75
"""The uniform number of a draw whose sides are in their stored order."""


class HeldoutRetrieval:
    """The held-out pairs of a stage's parallel streams, ready to be scored."""

    def __init__(self, context: RunContext, stage: StageConfig) -> None:
        self._context = context
        self._max_pairs = context.config.logging.validate_examples
        self._pooling: Pooling = _pooling(context, stage)
        self._slices: list[tuple[str, LanguageSlice]] = []
        """(label and languages, pairs)"""
        for name, stream in stage.streams.items():
            if isinstance(stream, ParallelStream):
                self._slices += [
                    (f"{name}/{one.language}", one)
                    for one in _heldout_slices(context, name, stream)
                    if one.num_examples > 1
                ]

    @property
    def num_pairs(self) -> int:
        """Pairs that it is computed on, over all streams."""
        return sum(self._num_pairs().values())

    def _num_pairs(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for label, pairs in self._slices:
            stream = label.split("/")[0]
            found[stream] = found.get(stream, 0) + min(pairs.num_examples, self._max_pairs)
        return found

    @torch.no_grad()
    def __call__(self, module: TrainModule) -> dict[str, float]:
        """`valid/STREAM/LANGUAGES/retrieval`, the mean over language pairs, and the pairs."""
        accelerator = self._context.accelerator
        hits = torch.zeros(len(self._slices), dtype=torch.float64)
        # processes share out language pairs, unless a pass needs all of them (FSDP)
        together = runs_together(module)
        for number, (_, pairs) in enumerate(self._slices):
            is_own = number % accelerator.num_processes == accelerator.process_index
            if together or is_own:
                accuracy = self._accuracy(module, pairs)
                hits[number] = accuracy if is_own else 0.0
        reshard(module)
        if accelerator.num_processes > 1 and len(hits):
            hits = accelerator.reduce(hits.to(accelerator.device)).cpu()
        found: dict[str, list[float]] = {}
        for (label, _), value in zip(self._slices, hits.tolist(), strict=True):
            found.setdefault(label, []).append(value)
            found.setdefault(f"{label.split('/')[0]}/mean", []).append(value)
        shares = {f"valid/{label}/retrieval": sum(v) / len(v) for label, v in found.items()}
        return shares | {f"valid/{name}/pairs": n for name, n in self._num_pairs().items()}

    def _accuracy(self, module: TrainModule, pairs: LanguageSlice) -> float:
        chosen = evenly_spaced(pairs.num_examples, self._max_pairs).tolist()
        examples = [pairs.example(index, _UNSWAPPED) for index in chosen]
        sides: tuple[list[tuple[IntArray, int]], ...] = ([], [])
        for one in examples:
            assert isinstance(one, Pair)
            sides[0].append((one.first, one.first_language))
            sides[1].append((one.second, one.second_language))
        first, second = (self._vectors(module, side) for side in sides)
        return accuracy_both_ways(first, second)

    def _vectors(self, module: TrainModule, sentences: Sequence[tuple[IntArray, int]]) -> Tensor:
        """(n, D) a vector of each sentence."""
        accelerator, vectors = self._context.accelerator, []
        for rows, places in self._rows(sentences):
            on_device = rows.to(accelerator.device)
            with accelerator.autocast():
                states = module.encode(on_device).hidden
            vectors.append(pool(states, on_device, places.to(states.device), self._pooling).float())
        return torch.cat(vectors)

    def _rows(self, sentences: Sequence[tuple[IntArray, int]]) -> Iterator[tuple[Rows, Tensor]]:
        """Rows of the shape that is trained on, and the flat index of each sentence's first token.

        Another shape would be compiled again.
        """
        shape, vocabulary = self._context.config.batch, self._context.corpus.vocabulary
        buffer: RowBuffer | None = None
        places: list[int] = []
        row = used = 0
        for ids, language in sentences:
            sequence = build_sequence(ids, language, vocabulary)
            if used + len(sequence) > shape.row_length:
                row, used = row + 1, 0
            if buffer is None or row == shape.micro_batch_rows:
                if buffer is not None:
                    yield buffer.rows(), torch.tensor(places)
                buffer = RowBuffer(shape.micro_batch_rows, shape.row_length, vocabulary.pad)
                places, row, used = [], 0, 0
            places.append(buffer.put(sequence, row, used))
            used += len(sequence)
        if buffer is not None:
            yield buffer.rows(), torch.tensor(places)


def accuracy_both_ways(first: Tensor, second: Tensor) -> float:
    """The share of rows whose nearest row of the other side is their own; ties are guesses."""
    cosines = F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
    own, shares = cosines.diagonal(), []
    for direction in (cosines, cosines.T):
        best = direction.max(dim=1).values
        ties = (direction == best[:, None]).sum(dim=1).clamp(min=1)
        shares.append(((own >= best) / ties).double().mean())
    return float(torch.stack(shares).mean())


def _pooling(context: RunContext, stage: StageConfig) -> Pooling:
    """How the stage's contrast of translations pools; without one, the mean."""
    for stream in stage.streams.values():
        for name in stream.objectives:
            objective = context.objectives[name]
            if isinstance(objective, ContrastObjective) and stream.kind == "parallel":
                return objective.pooling
    return "mean"


def _heldout_slices(
    context: RunContext, name: str, stream: ParallelStream
) -> tuple[LanguageSlice, ...]:
    """The held-out pairs of a stream, one by one; none where there are none that fit a row."""
    plain = replace(stream, mixup=False, overlong="drop")
    try:
        (opened,) = open_streams(
            context.corpus,
            {name: plain},
            context.known_objectives,
            row_length=context.config.batch.row_length,
            split="heldout",
        )
    except OverlongError:
        return ()
    return opened.slices
