"""Every number of every settings class has a range, and no number outside it gets in."""

import dataclasses
import math
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.alignment.config import AlignConfig
from isoglot.batching.streams import STREAMS
from isoglot.corpus.knowledge.extract import ExtractConfig
from isoglot.corpus.knowledge.link.config import LinkConfig
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.reading.registry import READERS
from isoglot.errors import RecipeError
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.visualize import VisualizationConfig
from isoglot.fetching.http import FetchConfig
from isoglot.fetching.unpack import UnpackLimits
from isoglot.finetuning.settings import FinetuneConfig, FinetuneRequest
from isoglot.mining.config import MineConfig
from isoglot.models.config import GenerationConfig
from isoglot.objectives import OBJECTIVES, find_objective
from isoglot.pretraining.config import Recipe
from isoglot.ranges import Range, out_of_range, types_of
from isoglot.recipe.document import Document
from isoglot.recipe.structure import structure

_NUMBERS = (int, float)


def _classes_in(kind: Any) -> Iterator[type]:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        yield kind
    for inner in typing.get_args(kind):
        yield from _classes_in(inner)


def _reached(roots: list[type]) -> list[Any]:
    found: dict[type, None] = {}
    waiting = list(roots)
    while waiting:
        one: Any = waiting.pop()
        if one not in found:
            found[one] = None
            waiting += [inner for kind in types_of(one).values() for inner in _classes_in(kind)]
    return list(found)


SETTINGS = _reached(
    [
        Recipe,
        PrepareConfig,
        ExtractConfig,
        LinkConfig,
        FinetuneConfig,
        FinetuneRequest,
        FeatureConfig,
        VisualizationConfig,
        GenerationConfig,
        FetchConfig,
        UnpackLimits,
        *STREAMS,
        *READERS,
        *map(find_objective, OBJECTIVES),
    ]
)


def _numbers_of(kind: Any) -> Iterator[Any]:
    """The numeric types inside a type: a number, a number or none, tuples of numbers."""
    if typing.get_origin(kind) is tuple:
        for inner in typing.get_args(kind):
            yield from _numbers_of(inner)
        return
    plain = typing.get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    options = typing.get_args(plain) or (plain,)
    if typing.get_origin(plain) is not typing.Literal and any(one in _NUMBERS for one in options):
        yield kind


FIELDS = [
    (settings, name, kind)
    for settings in SETTINGS
    for name, declared in types_of(settings).items()
    for kind in _numbers_of(declared)
]


def test_the_search_for_settings_finds_them() -> None:
    assert len(SETTINGS) > 35
    assert len(FIELDS) > 120


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: one.__name__)
def test_every_number_has_a_range(settings: Any) -> None:
    without = [
        name
        for name, declared in types_of(settings).items()
        for kind in _numbers_of(declared)
        if not any(isinstance(known, Range) for known in getattr(kind, "__metadata__", ()))
    ]
    assert not without


def _range_of(kind: Any) -> Range:
    return next(known for known in kind.__metadata__ if isinstance(known, Range))


@given(st.sampled_from(FIELDS), st.floats() | st.integers() | st.integers(-(10**40), 10**400))
def test_a_number_outside_its_range_is_refused_with_its_name_and_its_range(
    field: tuple[Any, str, Any], value: float
) -> None:
    settings, name, kind = field
    limits = _range_of(kind)
    number = isinstance(value, int) or math.isfinite(value)
    outside = not number or value < limits.low or value > limits.high
    fault = out_of_range(value, kind)
    assert not (outside and fault is None)
    if fault is not None:
        assert str(limits) in fault
    declared = types_of(settings)[name]
    if outside and typing.get_origin(declared) is not tuple:
        with pytest.raises(RecipeError) as caught:
            structure(Document(data={name: value}), settings)
        line = next(one for one in str(caught.value).splitlines() if one.strip().startswith(name))
        assert "must be" in line or ("expected" in line and "a whole number" in line)


def _made(settings: Any) -> Any:
    """Settings of a class with its defaults, or none where one is needed."""
    try:
        return settings()
    except (TypeError, RecipeError):
        return None


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: one.__name__)
def test_python_code_is_refused_as_recipes_are(settings: Any) -> None:
    default = _made(settings)
    if default is None or not hasattr(settings, "__post_init__"):
        return
    for name, kind in types_of(settings).items():
        for inner in _numbers_of(kind):
            limits = _range_of(inner)
            if typing.get_origin(kind) is tuple:
                continue
            for value in (limits.low - 1, limits.high * 2 + 1, math.nan):
                with pytest.raises(RecipeError, match=name):
                    dataclasses.replace(default, **{name: value})


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Range(1, 1024), "from 1 to 1,024"),
        (Range(0, 1, above=True), "above 0 and at most 1"),
        (Range(0, 1, below=True), "from 0 to below 1"),
        (Range(1e-4, 1e6), "from 0.0001 to 1,000,000"),
    ],
)
def test_a_range_in_words(limits: Range, text: str) -> None:
    assert str(limits) == text


def test_ends_of_a_range() -> None:
    assert 0 in Range(0, 1)
    assert 1 in Range(0, 1)
    assert 0 not in Range(0, 1, above=True)
    assert 1 not in Range(0, 1, below=True)
    not_a_number = float("nan")
    assert not_a_number not in Range(0, 1)


@pytest.mark.parametrize(
    ("settings", "changed", "message"),
    [
        (
            AlignConfig,
            {"aligner": "simalign"},
            "aligner must be one of transport, .*, not simalign",
        ),
        (AlignConfig, {"encode_type": "bf16"}, "encode_type must be one of float32, bfloat16"),
        (MineConfig, {"strategy": "both"}, "strategy must be one of .*max.*, not both"),
        (MineConfig, {"index": "annoy"}, "index must be one of auto, exact, faiss, not annoy"),
    ],
)
def test_a_value_that_is_none_of_the_choices_is_refused(settings, changed, message):
    with pytest.raises(RecipeError, match=message):
        settings(**changed)
