"""An encoder cut after a layer gives that layer's states, also after it was saved and loaded."""

import pytest
import torch
from transformers import AutoModel

from isoglot.errors import ModelError
from isoglot.models import truncate as module
from isoglot.models.truncate import truncate, truncated_states
from tests.models.tiny import ARCHITECTURES, CONFIGS, VOCABULARY

IDS = torch.arange(3 * 11).reshape(3, 11) * 7 % (VOCABULARY - 5) + 5
MASK = torch.ones_like(IDS)
MASK[2, 6:] = 0


def whole(architecture):
    torch.manual_seed(0)
    return AutoModel.from_config(CONFIGS[architecture]()).eval()


def states_after(base, layers):
    """The states that the model would end with after a layer."""
    with torch.no_grad():
        output = base(input_ids=IDS, attention_mask=MASK, output_hidden_states=True)
    return truncated_states(base, output.hidden_states, layers)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_it_ends_after_the_layer(architecture, layers, tmp_path):
    base = whole(architecture)
    for name, weight in base.named_parameters():
        if "norm" in name.lower():  # norms that change something
            torch.nn.init.normal_(weight)
    short = truncate(base, layers)
    expected = states_after(base, layers)
    with torch.no_grad():
        found = short(input_ids=IDS, attention_mask=MASK).last_hidden_state
    real = MASK.bool()
    assert torch.allclose(found[real], expected[real], atol=1e-5)
    assert base.config.num_hidden_layers == 3
    short.save_pretrained(tmp_path)
    loaded, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    with torch.no_grad():
        again = loaded.eval()(input_ids=IDS, attention_mask=MASK).last_hidden_state
    assert torch.allclose(again[real], expected[real], atol=1e-5)


def test_a_model_that_would_give_other_states_is_refused(monkeypatch):
    base = whole("modernbert")
    torch.nn.init.normal_(base.final_norm.weight)
    monkeypatch.setattr(module, "_final_norm", lambda _: None)
    with pytest.raises(ModelError, match="cannot be cut after layer 2"):
        truncate(base, 2)
