"""Settings of the right type that cannot work are faults too, with their path."""

import pytest

from isoglot.errors import RecipeError
from isoglot.recipe import load_recipe


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        (
            "checkpoint.every_steps=0",
            "checkpoint.every_steps: must be from 1 to 1,000,000,000, not 0",
        ),
        ("checkpoint.keep=0", "checkpoint.keep: must be from 1 to 1,000,000, not 0"),
        ("logging.every_steps=0", "logging.every_steps: must be from 1"),
        ("logging.trackers=[tensorbord]", "did you mean 'tensorboard'?"),
        ("batch.rows=0", "batch.rows: must be from 1 to 131,072, not 0"),
        ("batch.row_length=2", "batch.row_length: must be from 8"),
        ("loader.num_workers=-1", "loader.num_workers: must be from 0 to 256, not -1"),
        ("stages=[]", "a recipe needs a stage"),
        ("model.attention=cudnn", "yaml:1: model.attention: cudnn is not deterministic"),
        ("stages.0.streams={}", "stages.0: a stage needs a stream"),
        ("stages.0.steps=0", "stages.0.steps: must be from 1"),
        ("stages.0.steps=null", "stages.0: a stage needs steps, or epochs"),
        ("stages.0.epochs=0", "stages.0.epochs: must be above 0"),
        ("stages.0.streams.parallel.max_pairs=0", "max_pairs: must be from 1"),
        (
            "stages.0.streams.text.objectives=[]",
            "stages.0.streams.text: a stream needs an objective",
        ),
        ("stages.0.streams.text.objectives=[mlm, mlm]", "an objective is named twice"),
        ("stages.0.streams.text.share=0", "share: must be above 0 and at most 1,000,000, not 0"),
        ("stages.0.streams.text.max_tokens=0", "max_tokens: must be from 1"),
        ("objectives.mlm.masking.rate=0", "masking.rate: must be above 0 and at most 1, not 0"),
        ("objectives.mlm.masking.random_replace_prob=0.5", "must add up to at most 1"),
        ("optimizer.warmup_ratio=-3", "optimizer.warmup_ratio: must be from 0 to 1, not -3"),
        ("optimizer.betas=[2, 2]", "optimizer.betas.0: must be from 0 to below 1, not 2"),
        ("optimizer.learning_rate=.nan", "optimizer.learning_rate: must be from 0 to 100, not nan"),
        ("stages.0.epochs=.inf", "stages.0.epochs: must be above 0"),
        ("model.dropout=2", "model.dropout: must be from 0 to below 1, not 2"),
        ("model.num_heads=-1", "model.num_heads: must be from 1 to 1,024, not -1"),
        ("seed=1" + 400 * "0", "seed: must be from 0 to 10^18, not 10^400"),
        ("optimizer.eps=1" + 400 * "0", "optimizer.eps: must be from 0 to 1, not inf"),
    ],
)
def test_out_of_range(setting, part):
    with pytest.raises(RecipeError) as caught:
        load_recipe("tiny", [setting])
    assert part in str(caught.value)
