"""What is noted of a step: one flat record, the same for every writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoglot.pretrain.checkpoint import State
    from isoglot.pretrain.stage import Step

Record = dict[str, float | int | str]


def step_record(step: Step, total: int, state: State) -> Record:
    """Losses, metrics, counts and speed of a step; `total` counts steps over all stages."""
    record: Record = {"step": total, "stage": state.stage}
    record |= {f"{name}/loss": loss for name, loss in step.losses.items()}
    record |= step.metrics
    record |= {f"{name}/count": count for name, count in step.counts.items()}
    record |= {
        "learning_rate": step.learning_rate,
        "gradient_norm": step.gradient_norm,
        "tokens": step.num_tokens,
        "total_tokens": state.tokens,
        "seconds": step.seconds,
        "tokens_per_second": step.num_tokens / step.seconds,
    }
    if step.skipped:
        record["skipped"] = 1
    return record
