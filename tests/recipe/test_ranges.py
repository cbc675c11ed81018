"""Settings of the right type that cannot work are faults too, with their path."""

import pytest

from isoglot.errors import RecipeError
from isoglot.recipe import load_recipe


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("checkpoints.every=0", "checkpoints: checkpoints.every must be 1 or more"),
        ("checkpoints.keep=0", "checkpoints: checkpoints.keep must be 1 or more"),
        ("watch.log_every=0", "watch: watch.log_every must be 1 or more"),
        ("watch.trackers=[tensorbord]", "did you mean 'tensorboard'?"),
        ("batch.rows=0", "batch: batch.rows must be 1 or more"),
        ("batch.row_length=2", "batch: batch.row_length must be 8 or more"),
        ("loader.workers=-1", "loader: loader.workers must not be negative"),
        ("stages=[]", "a recipe needs a stage"),
        ("model.attention=cudnn", "yaml:1: model.attention: cudnn does not give the same bits"),
        ("stages.0.streams={}", "stages.0: a stage needs a stream"),
        ("stages.0.steps=0", "stages.0: a stage needs steps: 1 or more"),
        ("stages.0.steps=null", "stages.0: a stage needs steps, or epochs"),
        ("stages.0.epochs=0", "stages.0: a stage needs epochs: above 0"),
        ("stages.0.streams.parallel.first=0", "first must be 1 or more, or none"),
        (
            "stages.0.streams.text.objectives=[]",
            "stages.0.streams.text: a stream needs an objective",
        ),
        ("stages.0.streams.text.objectives=[mlm, mlm]", "an objective is named twice"),
        ("stages.0.streams.text.share=0", "share must be above 0"),
        ("stages.0.streams.text.max_length=0", "max_length must be 1 or more"),
        ("objectives.mlm.masking.rate=0", "masking.rate must be above 0"),
        ("objectives.mlm.masking.random_share=0.5", "must add up to at most 1"),
        ("optimizer.warmup=-3", "optimizer.warmup must not be negative"),
    ],
)
def test_out_of_range(setting, part):
    with pytest.raises(RecipeError) as caught:
        load_recipe("tiny", [setting])
    assert part in str(caught.value)
