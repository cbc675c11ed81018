"""Validation on held-out text, by objective and language: perplexity, or loss and accuracy.

Every validation uses the same examples with the same masks, so validations and runs compare.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isoglot.batching.counter_rng import key_of
from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.streams.base import OverlongError
from isoglot.models.sharding import runs_together
from isoglot.objectives.compared import GatheredStep
from isoglot.pretraining.accumulation import compared_over_step
from isoglot.pretraining.monitoring.heldout_retrieval import HeldoutRetrieval
from isoglot.pretraining.whole_step import WholeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accelerate import Accelerator

    from isoglot.batching.streams import StreamConfig
    from isoglot.objectives.base import LossSum
    from isoglot.objectives.compared import Compared, StepLoss
    from isoglot.pretraining.build import RunContext
    from isoglot.pretraining.config import StageConfig
    from isoglot.pretraining.monitoring.heldout_scores import Metric
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.types import Batch

_SEED = 0
"""Held-out masks do not depend on the run's seed, so that runs compare."""
_METRICS = ("accuracy", "chance")
"""Metrics of objectives that predict no tokens; `chance` is the accuracy of guessing."""


class Validation:
    """The held-out part of a stage's streams, ready to be scored."""

    def __init__(self, context: RunContext, stage: StageConfig) -> None:
        self._accelerator, self._objectives = context.accelerator, context.objectives
        self._max_examples = context.config.logging.validate_examples
        self._retrieval = HeldoutRetrieval(context, stage)
        self._loaders: list[tuple[str, str, str, Loader]] = []
        """(objective, label, language, batches)"""
        unlabeled: set[str] = set()
        for name, stream in stage.streams.items():
            for objective in stream.objectives:
                # of two streams that an objective reads, the first needs no stream name
                plain = name == stream.kind and objective not in unlabeled
                label = objective if plain else f"{name}.{objective}"
                if plain:
                    unlabeled.add(objective)
                found = context.objectives[objective]
                base = [other for other in found.depends_on() if other in stream.objectives]
                codes = {code for _, code in stream.selected(context.corpus)}
                for language in sorted(filter(found.accepts_language, codes)):
                    own = replace(
                        stream,
                        objectives=(*base, objective),
                        languages=(language,),
                        overlong="drop",
                    )
                    loader = _heldout_loader(context, name, own)
                    if loader is not None:
                        self._loaders.append((objective, label, language, loader))

    @property
    def metrics(self) -> list[Metric]:
        """What there are held-out examples of: losses, retrieval."""
        found: list[Metric] = ["loss"] if self._loaders else []
        return [*found, "retrieval"] if self._retrieval.num_pairs else found

    @torch.no_grad()
    def __call__(self, module: TrainModule) -> dict[str, float]:
        """`valid/OBJECTIVE/LANGUAGE/perplexity`, and the mean over languages.

        An objective that predicts no tokens has `loss` instead, and its metrics (`accuracy`); a
        stream of pairs has `valid/STREAM/LANGUAGES/retrieval`.
        """
        was_training = module.training
        module.eval()
        with _fixed_seed(self._accelerator):
            sums = self._sums(module)
            retrieval = self._retrieval(module)
        module.train(was_training)
        if self._accelerator.num_processes > 1:
            sums = self._accelerator.reduce(sums.to(self._accelerator.device)).cpu()
        return self._scores(sums) | retrieval

    def _sums(self, module: TrainModule) -> torch.Tensor:
        """(loaders, 2 + 2 × metrics): the rows of `_row`, over all batches."""
        together = runs_together(module)
        sums = torch.zeros(len(self._loaders), 2 + 2 * len(_METRICS), dtype=torch.float64)
        for number, (name, _, _, loader) in enumerate(self._loaders):
            if compared_over_step(module, [name]):
                batches = loader.single_pass_together(self._max_examples)
                compared, count = _contrast(module, name, batches, self._accelerator)
                if compared is not None:
                    sums[number] = _row(compared, count)
                continue
            for batch, is_own in loader.single_pass_together(self._max_examples):
                if not (is_own or together):
                    continue
                with self._accelerator.autocast():
                    found = module(batch.to(self._accelerator.device))[name]
                if is_own:
                    sums[number] += _row(found, batch.num_targets[name])
        return sums

    def _scores(self, sums: torch.Tensor) -> dict[str, float]:
        found: dict[str, float] = {}
        means: dict[tuple[str, str], list[list[float]]] = {}
        for (objective, label, language, _), (total, count, *metrics) in zip(
            self._loaders, sums.tolist(), strict=True
        ):
            if count:
                counted = zip(metrics[::2], metrics[1::2], strict=True)
                own = [value / number if number else math.nan for value, number in counted]
                row = [total / count, *own]
                found |= self._score(objective, f"{label}/{language}", row)
                means.setdefault((objective, label), []).append(row)
        for (objective, label), rows in means.items():
            row = [sum(values) / len(values) for values in zip(*rows, strict=True)]
            found |= self._score(objective, f"{label}/mean", row)
        return found

    def _score(self, objective: str, label: str, row: list[float]) -> dict[str, float]:
        """The scores of one row of means: the loss, then `_METRICS`."""
        found = self._objectives[objective]
        if found.target_marker is None and not found.depends_on():
            return {f"valid/{label}/perplexity": math.exp(min(row[0], 50.0))}
        named = zip(("loss", *_METRICS), row, strict=True)
        return {f"valid/{label}/{name}": value for name, value in named if not math.isnan(value)}


def _row(found: LossSum, count: int) -> torch.Tensor:
    """(2 + 2 × metrics,) the sum of losses and the number of targets; of each metric the same.

    A metric is a mean over the targets, or over a count of its own.
    """
    means = [found.ratios.get(one, (found.metrics.get(one, math.nan), count)) for one in _METRICS]
    numbers = (found.total, count, *(number for mean in means for number in mean))
    return torch.tensor([float(number) for number in numbers], dtype=torch.float64)


def _contrast(
    module: TrainModule,
    name: str,
    batches: Iterable[tuple[Batch, bool]],
    accelerator: Accelerator,
) -> tuple[LossSum | None, int]:
    """The loss of an objective that compares examples, and the number of them, on this process.

    Every held-out example of a language, at most `logging.validate_examples`, is compared with all
    the others of all processes. The candidates depend neither on the rows of a step nor on
    micro-batches and processes, so runs compare.

    Args:
        module: of the run, in evaluation.
        name: of the objective.
        batches: as many on every process, each with whether it is in the process's share.
        accelerator: of the run.
    """
    found: list[Compared] = []
    number = 0
    for batch, is_own in batches:
        with accelerator.autocast():
            part = module(batch.to(accelerator.device), whole_step=WholeStep(names=[name]))
        compared: Compared = part.compared[name]
        found.append(compared if is_own else compared.without_examples())
        number += batch.num_targets[name] if is_own else 0
    if not found:
        return None, 0
    step = GatheredStep.gather(found)
    with accelerator.autocast():
        loss: StepLoss = module(examples={name: step})[name]
    loss.loss.total = loss.loss.total + sum(map(loss.token_part, found))
    return loss.loss, number


def _heldout_loader(context: RunContext, name: str, stream: StreamConfig) -> Loader | None:
    """Batches of the held-out examples of a stream; none where there are none that fit a row."""
    shape, accelerator = context.config.batch, context.accelerator
    try:
        (opened,) = open_streams(
            context.corpus,
            {name: stream},
            context.known_objectives,
            row_length=shape.row_length,
            split="heldout",
        )
    except OverlongError:
        return None
    if not opened.slices:
        return None
    world = accelerator.num_processes
    return Loader(
        context.corpus,
        (opened,),
        replace(shape, rows=shape.micro_batch_rows * world),
        seed=_SEED,
        rank=accelerator.process_index,
        world=world,
    )


@contextmanager
def _fixed_seed(accelerator: Accelerator) -> Iterator[None]:
    """The objectives' own random draws (pseudo-tokens) are the same in every validation."""
    device = accelerator.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(key_of(_SEED, accelerator.process_index) >> 1)
        yield
