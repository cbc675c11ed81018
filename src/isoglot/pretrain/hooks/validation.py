"""Held-out text, for every objective and language: perplexity, or the loss of what is no token.

The same examples with the same masks each time, so that two validations, and two runs, compare.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.permutation import key_of
from isoglot.batching.streams.base import TooLongError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accelerate import Accelerator

    from isoglot.batching.planner import BatchConfig
    from isoglot.batching.streams import SequenceMaker, StreamConfig
    from isoglot.corpus import Corpus
    from isoglot.pretrain.trainee import Trainee

_SEED = 0
"""Held-out masks do not change with the run's seed: runs compare."""


class Validation:
    """The held-out part of a stage's streams, ready to be scored."""

    def __init__(
        self,
        corpus: Corpus,
        streams: Mapping[str, StreamConfig],
        makers: Mapping[str, SequenceMaker],
        shape: BatchConfig,
        accelerator: Accelerator,
        *,
        most: int,
    ) -> None:
        self._accelerator, self._most, self._makers = accelerator, most, makers
        world = accelerator.num_processes
        small = replace(shape, rows=shape.micro_rows * world)
        self._loaders: list[tuple[str, str, str, Loader]] = []
        plain: set[str] = set()
        for name, stream in streams.items():
            for objective in stream.objectives:
                # of two streams that an objective reads, the first needs no name
                only = name == stream.kind and objective not in plain
                label = objective if only else f"{name}.{objective}"
                if only:
                    plain.add(objective)
                codes = {code for _, code in stream.selected(corpus)}
                for language in sorted(filter(makers[objective].wants, codes)):
                    hosts = [
                        host for host in makers[objective].hosts() if host in stream.objectives
                    ]
                    part = replace(
                        stream,
                        objectives=(*hosts, objective),
                        languages=(language,),
                        too_long="drop",
                    )
                    try:
                        (opened,) = open_streams(
                            corpus,
                            {name: part},
                            makers,
                            row_length=shape.row_length,
                            split="heldout",
                        )
                    except TooLongError:
                        continue  # few are held out, and it may be that none of them fits
                    if opened.parts:
                        loader = Loader(
                            corpus,
                            (opened,),
                            small,
                            seed=_SEED,
                            rank=accelerator.process_index,
                            world=world,
                        )
                        self._loaders.append((objective, label, language, loader))

    @torch.no_grad()
    def __call__(self, trainee: Trainee) -> dict[str, float]:
        """`valid/OBJECTIVE/LANGUAGE perplexity` (or `loss`), and the mean over languages."""
        was_training = trainee.training
        trainee.eval()
        with _own_randomness(self._accelerator):
            sums = self._sums(trainee)
        trainee.train(was_training)
        if self._accelerator.num_processes > 1:
            sums = self._accelerator.reduce(sums.to(self._accelerator.device)).cpu()
        return self._scores(sums)

    def _sums(self, trainee: Trainee) -> torch.Tensor:
        """(loaders, 2): the sum of losses and what it is over."""
        sums = torch.zeros(len(self._loaders), 2, dtype=torch.float64)
        for number, (name, _, _, loader) in enumerate(self._loaders):
            for batch in loader.once(self._most):
                with self._accelerator.autocast():
                    found = trainee(batch.to(self._accelerator.device))[name]
                sums[number] += torch.tensor([float(found.total), batch.counts[name]]).double()
        return sums

    def _scores(self, sums: torch.Tensor) -> dict[str, float]:
        found: dict[str, float] = {}
        means: dict[tuple[str, str], list[float]] = {}
        for (objective, label, language, _), (total, count) in zip(
            self._loaders, sums.tolist(), strict=True
        ):
            if count:
                mean = total / count
                found |= self._score(objective, f"{label}/{language}", mean)
                means.setdefault((objective, label), []).append(mean)
        for (objective, label), values in means.items():
            found |= self._score(objective, f"{label}/mean", sum(values) / len(values))
        return found

    def _score(self, objective: str, label: str, mean: float) -> dict[str, float]:
        maker = self._makers[objective]
        if maker.counts is None and not maker.hosts():
            return {f"valid/{label} perplexity": math.exp(min(mean, 50.0))}
        return {f"valid/{label} loss": mean}


@contextmanager
def _own_randomness(accelerator: Accelerator) -> Iterator[None]:
    """What an objective draws (pseudo-tokens) is the same each time too."""
    device = accelerator.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(key_of(_SEED, accelerator.process_index) >> 1)
        yield
