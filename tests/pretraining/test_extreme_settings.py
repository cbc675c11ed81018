"""Settings at the ends of their ranges train, or are refused with a sentence: never a traceback."""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from pathlib import Path
from typing import Any

import pytest

from isoglot.errors import IsoglotError
from isoglot.pretraining.run import pretrain
from isoglot.ranges import Range, types_of
from isoglot.recipe import load_recipe

_QUICK = (
    "stages.0.steps=2",
    "batch.rows=4",
    "batch.micro_rows=2",
    "batch.row_length=64",
    "logging.validate_examples=2",
    "model.num_layers=1",
    "model.hidden_size=16",
    "model.num_heads=2",
)
# the upper end of these is a real size: right on a machine that is large enough
_SIZES = (
    "rows",
    "row_length",
    "layers",
    "hidden",
    "heads",
    "positions",
    "workers",
    "chunk",
    "size",
)


def _numbers(path: str, settings: Any) -> typing.Iterator[tuple[str, Range]]:
    """Every number of a recipe, by its path."""
    settings_class: Any = type(settings)
    for name, kind in types_of(settings_class).items():
        value = getattr(settings, name)
        for known in getattr(kind, "__metadata__", ()):
            yield f"{path}{name}", known
        named = dict(enumerate(value)) if name == "stages" else value
        for key, one in named.items() if isinstance(named, dict) else ():
            if not dataclasses.is_dataclass(one):
                continue
            yield from _numbers(f"{path}{name}.{key}.", one)
        if hasattr(value, "__dataclass_fields__"):
            yield from _numbers(f"{path}{name}.", value)


def _cases() -> list[str]:
    recipe = load_recipe("tiny", ["objectives.mlm.masking.rate=0.15", "objectives.tlm={}"])
    cases = []
    for path, limits in _numbers("", recipe):
        low = limits.low + 1e-9 if limits.above else limits.low
        high = limits.high - 1e-9 if limits.below else limits.high
        cases.append(f"{path}={low}")
        if not any(size in path for size in _SIZES) and not path.endswith(".steps"):
            cases.append(f"{path}={high if limits.high > 1 else float(high)}")
    return cases


CASES = _cases()


@pytest.mark.slow
@pytest.mark.parametrize("setting", CASES)
def test_extreme_settings_train_or_are_refused(corpus: Any, tmp_path: Path, setting: str) -> None:
    with contextlib.suppress(IsoglotError):  # anything else fails the test
        recipe = load_recipe("tiny", [*_QUICK, setting])
        outcome = pretrain(recipe, corpus, tmp_path / "run")
        assert outcome.model is not None
        assert (outcome.model / "config.json").is_file()


def test_there_are_cases() -> None:
    assert len(CASES) > 50
