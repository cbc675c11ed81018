"""Settings of features: which are refused."""

from __future__ import annotations

import pytest

from isoglot.errors import IsoglotError
from isoglot.evaluation.settings import FeatureConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"num_neighbors": 0},
        {"sinkhorn_iterations": 0},
        {"regularization": 0.0},
        {"softmax_threshold": 1.5},
        {"max_masks": 0},
    ],
)
def test_settings_that_cannot_work(wrong):
    with pytest.raises(IsoglotError, match=next(iter(wrong))):
        FeatureConfig(**wrong)
