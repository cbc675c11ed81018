"""The arms: xlm-mlm's settings, each lever alone, and several together (`shape+muon`, `all`).

A lever is a list of settings. Those that change no kernel and no shape (`FREE`) take the time of
the arm without them, so they are not timed.
"""

from __future__ import annotations

BASELINE = "baseline"
ALL = "all"
WARM_UP_SHARE = 0.25
"""Share of the steps in which the batch grows."""

LEVERS: dict[str, tuple[str, ...]] = {
    "shape": ("model.size=modern-small",),
    "dropout": ("model.dropout=0.0",),
    "muon": ("optimizer.name=muon",),
    "wsd": ("optimizer.schedule=wsd",),
    "masking": ("stages.0.masking_rate={start: 0.3, end: 0.15}",),
    "alpha": ("stages.0.streams.text.end_alpha=0.3",),
    "averaging": ("averaging={decay: 0.999}",),
    "batch-warmup": ("batch.micro_rows=128",),
}
"""Lever -> settings. ModernBERT's classes; no dropout (ModernBERT); Muon; warm-up, stable, decay;
a masking rate from 30 to 15 %; alpha from 0.7 to 0.3; an average of the weights; from half of the
rows to all of them in the first quarter of the steps (`batch_warmup` follows the steps)."""
CONTROLS: dict[str, tuple[str, ...]] = {
    "lr-0.5": ("optimizer.learning_rate=5.0e-4",),
    "lr-2": ("optimizer.learning_rate=2.0e-3",),
}
"""Is the baseline's learning rate a good one? Half and twice of it."""
FREE = ("wsd", "alpha", *CONTROLS)

SMALL = (
    "model.num_layers=2",
    "model.hidden_size=32",
    "model.num_heads=2",
    "batch.rows=8",
    "batch.micro_rows=8",
    "batch.row_length=64",
    "logging.validate_examples=4",
)
"""A model that two cores train in seconds, to try the program."""


def arm_order(chosen: list[str]) -> list[str]:
    """The arms by what they tell: baseline and all levers first, then each lever."""
    return chosen or [BASELINE, ALL, *LEVERS]


def parts_of(arm: str) -> list[str]:
    """The levers of an arm."""
    if arm == BASELINE:
        return []
    parts = list(LEVERS) if arm == ALL else arm.split("+")
    known = LEVERS | CONTROLS
    for part in parts:
        if part not in known:
            raise SystemExit(f"there is no lever {part!r}: {', '.join(known)}, {ALL}, {BASELINE}")
    return parts


def settings_of(arm: str, steps: int, warm_steps: int | None = None, *, small: bool) -> list[str]:
    """The settings of an arm of so many steps, the batch growing in `warm_steps` of them."""
    parts = parts_of(arm)
    settings = [f"stages.0.steps={steps}", *(SMALL if small else ())]
    settings += [setting for part in parts for setting in (LEVERS | CONTROLS)[part]]
    if "batch-warmup" in parts:
        rows = 4 if small else 128
        warm = warm_steps or max(1, round(WARM_UP_SHARE * steps))
        settings += [
            f"batch.micro_rows={rows}",
            f"stages.0.batch_warmup={{start_rows: {rows}, steps: {warm}}}",
        ]
    return settings


def timed_as(arm: str) -> str:
    """The arm whose steps take the same time: this one without the levers that cost nothing."""
    costly = [part for part in parts_of(arm) if part not in FREE]
    return "+".join(costly) or BASELINE


def steps_in(seconds: float, full: float, small: float | None) -> int:
    """Steps that take so many seconds, given those of a step, and of one with the first rows."""
    mean = full if small is None else WARM_UP_SHARE * small + (1 - WARM_UP_SHARE) * full
    return max(1, round(seconds / mean))
