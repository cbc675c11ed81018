"""What an export gets from momentum contrast: pooling, and the projection where asked."""

from typing import Any

import pytest

from isoglot.errors import RecipeError
from isoglot.objectives.contrast.pooling import ProjectionConfig
from isoglot.objectives.moco import MoCo
from tests.objectives.laid_out import make_encoder


def module_of(**settings: Any) -> Any:
    corpus: Any = None
    return MoCo(**settings).build_module(make_encoder(size=60, layers=2), corpus)


def test_without_the_projection_a_sentence_is_its_pooled_states():
    head = module_of(pooling="mean").sentence_head(projected=False)
    assert (head.pooling, head.normalize, tuple(head.layers)) == ("mean", "none", ())


@pytest.mark.parametrize("normalize", ["before", "after"])
def test_with_it_the_layers_are_the_trained_ones(normalize):
    module = module_of(projection=ProjectionConfig(layers=2, size=8, normalize=normalize))
    head = module.sentence_head(projected=True)
    assert (head.pooling, head.normalize) == ("cls", normalize)
    assert [layer.weight.shape for layer in head.layers] == [(32, 32), (8, 32)]
    own = module.projection.linear()
    assert all(one is other for one, other in zip(head.layers, own, strict=True))


def test_states_of_an_inner_layer_are_no_folder_of_their_own():
    with pytest.raises(RecipeError, match="reads layer 1"):
        module_of(layer=1).sentence_head(projected=False)
