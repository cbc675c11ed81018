"""A model that was trained with language embeddings is fine-tuned and scored with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from isoglot.evaluation.embed import embed
from isoglot.evaluation.loading import load_for_scoring
from isoglot.finetuning.classification import MultipleChoiceHead, SequenceClassificationHead
from isoglot.finetuning.data import training_data
from isoglot.finetuning.parameter_groups import parameter_groups
from isoglot.finetuning.predict import run_model
from isoglot.finetuning.save import save_model
from isoglot.finetuning.train import BestEpoch, train
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from isoglot.tasks.examples import LabeledText, MultipleChoice
from isoglot.types import Rows

EXAMPLES = [
    LabeledText(id=str(n), first="kalo mitu", second="sera ka lo", label="xy"[n % 2])
    for n in range(8)
]


@pytest.fixture(scope="module")
def trained(corpus):
    """An encoder whose languages differ."""
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=64,
        language_embeddings="all",
    )  # fmt: skip
    encoder = Encoder.build(settings, corpus.vocabulary, languages=corpus.languages).eval()
    assert encoder.languages is not None
    torch.nn.init.normal_(encoder.languages.weight)
    return encoder


@pytest.fixture(scope="module")
def folder(corpus, trained, tmp_path_factory):
    place = tmp_path_factory.mktemp("languages") / "model"
    export_encoder(trained, place, tokenizer_folder=corpus.tokenizer_folder, card="")
    return place


@torch.no_grad()
def test_the_encoder_sees_what_it_saw_in_pre_training(folder, trained, corpus, settings):
    """By the states under the head, for a pair of texts in two languages."""
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    model = head.load_model().eval()
    states = []
    model.base_model.register_forward_hook(lambda *a: states.append(a[-1].last_hidden_state))
    run_model(model, head, EXAMPLES[:1], "bb-cc")
    ids = torch.tensor([head.tokenizer("kalo mitu", "sera ka lo")["input_ids"]])
    first = ids[0].tolist().index(head.tokenizer.sep_token_id) + 1
    bb, cc = (corpus.languages.index(code) for code in ("bb", "cc"))
    zeros = torch.zeros_like(ids)
    rows = Rows(
        ids=ids,
        positions=torch.arange(ids.shape[1])[None],
        languages=torch.where(torch.arange(ids.shape[1]) < first, bb, cc)[None],
        sentences=zeros,
        roles=zeros,
        rules=zeros,
        sequences=zeros,
    )
    torch.testing.assert_close(states[0], trained(rows).hidden, atol=1e-5, rtol=1e-4)


def test_each_example_has_its_language_and_padding_none(folder, settings, corpus):
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    short = replace(EXAMPLES[0], first="ka", second="lo")
    languages = [("aa", "aa"), ("bb", "cc"), ("zz", "aa")]
    windows = head.windows([short, EXAMPLES[0], EXAMPLES[0]], training=True, languages=languages)
    found = head.collate(windows)["language_ids"]
    ids = head.collate(windows)["input_ids"]
    aa, bb, cc = (corpus.languages.index(code) for code in ("aa", "bb", "cc"))
    length = int((ids[0] != head.tokenizer.pad_token_id).sum())
    assert found[0].tolist() == [aa] * length + [-1] * (ids.shape[1] - length)
    assert set(found[1].tolist()) == {bb, cc}
    assert set(found[2].tolist()) == {-1, aa}


@torch.no_grad()
def test_predictions_depend_on_the_language_unless_it_is_left_out(folder, settings):
    found = []
    for use in (True, False):
        head = SequenceClassificationHead(
            folder, replace(settings, language_embeddings=use), ["x", "y"]
        )
        torch.manual_seed(0)
        model = head.load_model()
        found.append([run_model(model, head, EXAMPLES[:1], code)[1][0][0] for code in ("aa", "bb")])
    assert not torch.allclose(found[0][0], found[0][1], atol=1e-4)
    assert torch.equal(found[1][0], found[1][1])
    assert "language_ids" not in head.collate(head.windows(EXAMPLES, training=False))


def test_training_reaches_the_embeddings_of_its_language(folder, settings, tmp_path, corpus):
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    torch.manual_seed(0)
    model = head.load_model()
    table = model.base_model.language_embeddings
    before = table.weight.detach().clone()
    windows = head.windows(EXAMPLES, training=True, languages=[("bb", "bb")] * len(EXAMPLES))
    best = BestEpoch(None, tmp_path, higher_is_better=True)
    train(model, head, windows, [], settings, seed=0, scratch=tmp_path, best=best)
    moved = (table.weight - before).abs().amax(dim=1) > 1e-6
    assert moved.nonzero()[:, 0].tolist() == [corpus.languages.index("bb")]


def test_their_learning_rate_is_that_of_the_embeddings(folder, settings):
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    model = head.load_model()
    groups = parameter_groups(model, replace(settings, layerwise_lr_decay=0.5))
    rates = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    words = model.get_input_embeddings().weight
    assert rates[id(model.base_model.language_embeddings.weight)] == rates[id(words)]


class _Record:
    def write(self, folder):
        pass


def test_a_saved_model_keeps_them_and_transformers_loads_it(folder, settings, tmp_path):
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    model = head.load_model()
    with torch.no_grad():
        model.base_model.language_embeddings.weight.add_(1.0)
    save_model(model, head, tmp_path / "m", _Record())  # type: ignore[arg-type]
    _, report = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    again = SequenceClassificationHead(tmp_path / "m", settings, ["x", "y"])
    same = again.load_model()
    with torch.no_grad():
        for code in ("aa", "cc"):
            first = run_model(model, head, EXAMPLES[:2], code)[1]
            second = run_model(same, again, EXAMPLES[:2], code)[1]
            assert torch.equal(first[0][0], second[0][0])
    encoder, tokenizer = load_for_scoring(tmp_path / "m" / "encoder")
    assert encoder.languages is not None
    assert torch.equal(encoder.languages.weight, model.base_model.language_embeddings.weight)
    vectors = [embed(encoder, tokenizer, ["ka lo"], language=code) for code in ("aa", "bb")]
    assert not torch.allclose(vectors[0], vectors[1], atol=1e-4)


@torch.no_grad()
def test_alternatives_have_languages(folder, settings):
    head = MultipleChoiceHead(folder, settings, [])
    example = MultipleChoice(
        id="0", premise="ka lo", asks="cause", choices=("mitu", "sera"), right=0
    )
    torch.manual_seed(0)
    model = head.load_model()
    found = [run_model(model, head, [example], code)[1][0][0] for code in ("aa", "bb")]
    assert found[0].shape == (2,)
    assert not torch.allclose(found[0], found[1], atol=1e-5)


def test_code_switched_examples_have_the_languages_of_their_halves(monkeypatch):
    from isoglot.finetuning import data
    from isoglot.finetuning.settings import FinetuneConfig

    own = [replace(example, label="x") for example in EXAMPLES[:2]]
    monkeypatch.setattr(data, "read_examples", lambda *_, **__: own)

    class Spec:
        original_language = "en"
        train_languages = ("en", "es")

    config = FinetuneConfig(code_switch=True)
    found = training_data(None, None, Spec(), config, None)  # type: ignore[arg-type]
    assert found.languages == [("en", "en")] * 2 + [("es", "en"), ("en", "es")] * 2
    assert len(found.examples) == len(found.languages)
    switched = training_data(None, None, Spec(), FinetuneConfig(), None)  # type: ignore[arg-type]
    assert switched.languages == [("en", "en")] * 2 + [("es", "es")] * 2
    assert np.array(found.pairs).max() == len(found.examples) - 1
