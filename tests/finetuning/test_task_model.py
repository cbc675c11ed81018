"""New weights are named, decoders refused, and heads are equal with and without a pooler."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForTokenClassification,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
)

from isoglot.errors import ModelError
from isoglot.evaluation.loading import load_encoder
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.predict import predict
from isoglot.finetuning.tagging import TokenClassificationHead
from isoglot.tasks.examples import LabeledText

EXAMPLES = [LabeledText(id=str(i), first="kalo mitu " * (i + 1), label="xy"[i % 2]) for i in (0, 1)]
LABELS = ["x", "y"]


@pytest.fixture
def berts(folder, tmp_path) -> dict[str, Path]:
    """One BERT twice: as it was released, and as a masked language model, without a pooler."""
    small = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(1)
    config = BertConfig(vocab_size=1000, num_hidden_layers=1, pad_token_id=1, **small)
    released = BertForPreTraining(config)
    bare = BertForMaskedLM(config)
    bare.load_state_dict(released.state_dict(), strict=False)
    places = {}
    for name, model in (("released", released), ("bare", bare)):
        places[name] = tmp_path / name
        shutil.copytree(folder, places[name])
        model.save_pretrained(places[name])
    return places


def loaded(kind, place, settings, seed=0):
    torch.manual_seed(seed)
    return kind(place, settings, [] if kind is MultipleChoiceHead else LABELS).load_model()


@pytest.mark.parametrize("kind", [SequenceClassificationHead, MultipleChoiceHead])
def test_a_folder_with_a_pooler_and_one_without_get_equal_heads(berts, settings, kind):
    one, other = (loaded(kind, place, settings).state_dict() for place in berts.values())
    assert one.keys() == other.keys()
    assert any("pooler" in name for name in one)
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())
    another = loaded(kind, berts["bare"], settings, seed=1).state_dict()
    assert not torch.equal(another["bert.pooler.dense.weight"], one["bert.pooler.dense.weight"])
    assert not torch.equal(another["classifier.weight"], one["classifier.weight"])


def test_the_folders_own_pooler_is_used_where_it_is_asked_for(berts, folder, settings):
    settings = replace(settings, pooler="pretrained")
    model = loaded(SequenceClassificationHead, berts["released"], settings)
    released = BertForPreTraining.from_pretrained(berts["released"])
    own = released.bert.pooler.dense.weight
    assert torch.equal(model.bert.pooler.dense.weight, own)
    for place in (berts["bare"], folder):  # XLM-R's classifier has no pooler below it
        with pytest.raises(ModelError, match=r"has no pooler.*--set pooler=new"):
            loaded(SequenceClassificationHead, place, settings)
    assert loaded(TokenClassificationHead, folder, settings), "tags need none"


@pytest.mark.parametrize("which", ["bert", "xlm-r"])
def test_without_a_pooler_the_classifier_is_linear_on_the_first_state(
    berts, folder, settings, tmp_path, which
):
    place = berts["released"] if which == "bert" else folder
    head = SequenceClassificationHead(place, replace(settings, pooler="none"), LABELS)
    torch.manual_seed(0)
    model = head.load_model().eval()
    windows = head.windows(EXAMPLES, training=True)
    batch = head.collate(windows)
    with torch.no_grad():
        states = model.base_model(batch["input_ids"], batch["attention_mask"]).last_hidden_state
        logits = states[:, 0].double() @ model.classifier.weight.double().T
        loss = model(**batch).loss
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1]))
    assert float(loss) == pytest.approx(float(expected), abs=1e-6)
    said = [LABELS[int(row.argmax())] for row in logits]
    assert predict(model, head, EXAMPLES) == said
    model.save_pretrained(tmp_path / "saved")  # transformers opens it as it was trained
    again = AutoModelForTokenClassification.from_pretrained(tmp_path / "saved").eval()
    assert torch.allclose(again(**batch).logits[:, 0].double(), logits, atol=1e-5)


def test_a_fine_tuned_folder_keeps_its_pooler_with_its_classifier(berts, settings, tmp_path):
    tuned = loaded(SequenceClassificationHead, berts["bare"], settings)
    place = tmp_path / "tuned"
    shutil.copytree(berts["bare"], place)
    tuned.save_pretrained(place)
    again = loaded(SequenceClassificationHead, place, settings, seed=5).state_dict()
    assert all(torch.equal(weight, again[name]) for name, weight in tuned.state_dict().items())


def test_new_and_unused_weights_are_named_in_a_line(berts, folder, settings):
    said: list[str] = []
    SequenceClassificationHead(folder, settings, LABELS).load_model(said.append)
    assert said.pop() == (
        f"{folder}: classifier.dense, classifier.out_proj newly initialized; "
        "lm_head, lm_head.dense, lm_head.layer_norm of the folder not used."
    )
    SequenceClassificationHead(berts["released"], settings, LABELS).load_model(said.append)
    assert "bert.pooler.dense, classifier newly initialized" in said[0]
    assert "\n" not in said[0]


def test_a_decoder_is_refused_in_the_same_words_as_by_evaluate(folder, settings, tmp_path):
    place = tmp_path / "gpt2"
    shutil.copytree(folder, place)
    GPT2LMHeadModel(
        GPT2Config(vocab_size=1000, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    ).save_pretrained(place)
    said = []
    for load in (
        lambda: load_encoder(place),
        lambda: SequenceClassificationHead(place, settings, LABELS).load_model(),
        lambda: TokenClassificationHead(place, settings, LABELS).load_model(),
    ):
        with pytest.raises(ModelError, match="not a masked language model") as refused:
            load()
        said.append(str(refused.value))
    assert len(set(said)) == 1
