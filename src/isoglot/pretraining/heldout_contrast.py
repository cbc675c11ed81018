"""The held-out loss of an objective that compares the examples of a step.

Every held-out example of a language, at most `logging.validate_examples`, is compared with all the
others: the candidates depend neither on the rows of a step nor on micro-batches and processes, so
that runs compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.objectives.compared import GatheredStep
from isoglot.pretraining.train_module import WholeStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accelerate import Accelerator

    from isoglot.objectives.base import LossSum
    from isoglot.objectives.compared import Compared, StepLoss
    from isoglot.pretraining.train_module import TrainModule
    from isoglot.types import Batch


def heldout_contrast(
    module: TrainModule,
    name: str,
    batches: Iterable[tuple[Batch, bool]],
    accelerator: Accelerator,
) -> tuple[LossSum | None, int]:
    """The loss of this process's examples among those of all processes, and their number.

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
