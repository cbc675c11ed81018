"""PPA's recipe says what the paper says (sections 2 and 3, Table 5); so do its variants."""

import pytest

from isoglot.objectives import TLM, MoCo
from isoglot.pretrain.config import objectives_of
from isoglot.recipe import load_recipe


def stream_of(recipe):
    (stage,) = recipe.stages
    (stream,) = stage.streams.values()
    return stage, stream


def test_the_papers_numbers():
    recipe = load_recipe("ppa")
    moco, tlm = (objectives_of(recipe)[name] for name in ("moco", "tlm"))
    assert isinstance(moco, MoCo)
    assert isinstance(tlm, TLM)
    assert (moco.pooling, moco.layer, moco.temperature) == ("cls", None, 0.05)
    assert (moco.momentum.value, moco.queue.size, moco.queue.start) == (0.999, 32_000, "random")
    assert (moco.keys, moco.in_batch, moco.masking) == ("momentum", False, None)
    head = moco.projection
    assert (head.layers, head.size, head.bias, head.normalize) == (2, 300, False, "before")
    assert (tlm.positions, tlm.separator, tlm.language_ids) == ("continuous", "single", False)
    assert (tlm.masking.rate, tlm.masking.mask_share, tlm.masking.random_share) == (0.15, 0.8, 0.1)
    assert (moco.weight, tlm.weight, recipe.loss.weighting) == (1.0, 1.0, "mean")
    settings = recipe.optimizer
    assert (settings.name, settings.learning_rate, settings.weight_decay) == ("adamw", 3e-5, 0.01)
    assert (settings.schedule, settings.warmup) == ("linear", 0.1)
    stage, stream = stream_of(recipe)
    assert (stage.epochs, stream.mixture, stream.order) == (10, "epochs", "shuffled")
    assert (stream.least, stream.most, stream.first) == (10, 128, 250_000)


@pytest.mark.parametrize(
    ("name", "objectives", "first", "epochs"),
    [
        ("ppa-600k", ("moco", "tlm"), 600_000, 10),
        ("ppa-2m", ("moco", "tlm"), 2_000_000, 5),
        ("ppa-no-moco", ("tlm",), 250_000, 10),
        ("ppa-no-tlm", ("moco",), 250_000, 10),
        ("ppa-mlm", ("moco", "mlm"), 250_000, 10),
    ],
)
def test_a_variant_differs_in_what_it_says_and_in_nothing_else(name, objectives, first, epochs):
    recipe, base = load_recipe(f"ablations/{name}"), load_recipe("ppa")
    stage, stream = stream_of(recipe)
    assert (stream.objectives, stream.first, stage.epochs) == (objectives, first, epochs)
    _, plain = stream_of(base)
    for setting in ("order", "mixture", "least", "most"):
        assert getattr(stream, setting) == getattr(plain, setting)
    assert (recipe.optimizer, recipe.model) == (base.optimizer, base.model)
    for objective in set(objectives) & {"moco", "tlm"}:
        assert objectives_of(recipe)[objective] == objectives_of(base)[objective]
