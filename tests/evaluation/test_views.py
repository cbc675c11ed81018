"""Layers and directions of retrieval, as papers print them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isoglot.errors import IsoglotError
from isoglot.evaluation.views import RetrievalView, retrieval_view
from isoglot.results import Score


@pytest.mark.parametrize(
    ("protocol", "num_layers", "layer"),
    [
        ("xtreme", 12, 8), ("xtreme", 24, 14), ("ernie-m-base", 12, 6), ("ernie-m-large", 24, 12),
    ],
)  # fmt: skip
def test_the_layers_of_papers(protocol, num_layers, layer):
    """XTREME's script has the indices 7 and 13 of its lists, which begin with the first layer."""
    view = retrieval_view(protocol, num_layers)
    assert view == RetrievalView(layer=layer, direction="to-en", paper=protocol)
    assert view is not None
    assert view.name == f"{protocol}: layer {layer}, to en"


def test_protocols_without_a_layer():
    assert retrieval_view("xtreme", 6) is None
    assert retrieval_view("metaxlm", 12) is None


def test_options_go_before_the_paper():
    assert retrieval_view("xtreme", 12, layer=3) == RetrievalView(layer=3)
    own = retrieval_view("xtreme", 12, direction="from-en")
    assert own == RetrievalView(layer=None, direction="from-en")
    assert own is not None
    assert own.name == "exported, from en"
    assert retrieval_view("xtreme", 12, layer=12) is not None
    assert retrieval_view("xtreme", 12, layer=0) is not None
    with pytest.raises(IsoglotError, match="layers 0 to 12"):
        retrieval_view("xtreme", 12, layer=13)
    for wrong in ("up", "to", "to-", "en", "to-2!"):
        with pytest.raises(IsoglotError, match="to-en or from-en"):
            retrieval_view("xtreme", 12, direction=wrong)


def test_a_direction_is_a_metric():
    to_english = RetrievalView(layer=8, direction="to-en")
    assert to_english.metric("accuracy@1", "sw-en") == "accuracy@1 sw→en"
    assert to_english.metric("accuracy@1", "en-sw") == "accuracy@1 sw→en"
    assert to_english.metric("accuracy@1", "de-sw") is None
    assert to_english.metric("p@1", "en") is None, "no pair"
    from_english = RetrievalView(layer=8, direction="from-en")
    assert from_english.metric("accuracy@1", "sw-en") == "accuracy@1 en→sw"
    assert RetrievalView(direction="from-swa").metric("accuracy@1", "sw-en") == "accuracy@1 sw→en"
    assert RetrievalView().metric("accuracy@1", "de-sw") == "accuracy@1"


def test_the_scores_of_a_view():
    score = Score(task="t", version=1, language="sw-en", metric="accuracy@1", value=0.1, count=9)
    scores = [
        replace(score, layer=layer, metric=f"accuracy@1{way}", value=layer + number / 10)
        for layer in range(3)
        for number, way in enumerate(("", " sw→en", " en→sw"))
    ]
    view = RetrievalView(layer=2, direction="to-en")
    assert {code: s.value for code, s in view.values(scores, "accuracy@1").items()} == {
        "sw-en": 2.1
    }
