"""Settings of the right type that cannot work are faults too, with their path."""

import pytest

from isoglot.errors import RecipeError
from isoglot.recipe import load_recipe


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("checkpoint.every_steps=0", "checkpoint: checkpoint.every_steps must be 1 or more"),
        ("checkpoint.keep=0", "checkpoint: checkpoint.keep must be 1 or more"),
        ("logging.every_steps=0", "logging: logging.every_steps must be 1 or more"),
        ("logging.trackers=[tensorbord]", "did you mean 'tensorboard'?"),
        ("batch.rows=0", "batch: batch.rows must be 1 or more"),
        ("batch.row_length=2", "batch: batch.row_length must be 8 or more"),
        ("loader.num_workers=-1", "loader: loader.num_workers must not be negative"),
        ("stages=[]", "a recipe needs a stage"),
        ("model.attention=cudnn", "yaml:1: model.attention: cudnn is not deterministic"),
        ("stages.0.streams={}", "stages.0: a stage needs a stream"),
        ("stages.0.steps=0", "stages.0: a stage needs steps: 1 or more"),
        ("stages.0.steps=null", "stages.0: a stage needs steps, or epochs"),
        ("stages.0.epochs=0", "stages.0: a stage needs epochs: above 0"),
        ("stages.0.streams.parallel.max_pairs=0", "max_pairs must be 1 or more, or none"),
        (
            "stages.0.streams.text.objectives=[]",
            "stages.0.streams.text: a stream needs an objective",
        ),
        ("stages.0.streams.text.objectives=[mlm, mlm]", "an objective is named twice"),
        ("stages.0.streams.text.share=0", "share must be above 0"),
        ("stages.0.streams.text.max_tokens=0", "max_tokens must be 1 or more"),
        ("objectives.mlm.masking.rate=0", "masking.rate must be above 0"),
        ("objectives.mlm.masking.random_replace_prob=0.5", "must add up to at most 1"),
        ("optimizer.warmup_ratio=-3", "optimizer.warmup_ratio must be between 0 and 1"),
    ],
)
def test_out_of_range(setting, part):
    with pytest.raises(RecipeError) as caught:
        load_recipe("tiny", [setting])
    assert part in str(caught.value)
