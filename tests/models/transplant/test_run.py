"""Transplanted models: what is the source's stays the source's, bit for bit."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForMaskedLM, GPT2Config, GPT2LMHeadModel

from isoglot.errors import IsoglotError, ModelError
from isoglot.models.encoder import Encoder
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.matching import Matches
from isoglot.models.transplant.replace_vocabulary import weighted_rows
from isoglot.models.transplant.run import transplant
from tests.models.tiny import ARCHITECTURES
from tests.models.transplant.tiny_tokenizers import KINDS, model_for, of_words, opened, wordpiece

WORDS = ["house", "big", "dog", "a", "the"]
TEXT = "the big dog a house"


def weights_of(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


def test_rows():
    table = torch.randn(5, 3)
    table[1, 0] = -0.0
    matches = Matches.of(
        ["exact", "subwords", "random", "zero", "exact"],
        [{1: 1.0}, {0: 0.25, 3: 0.75}, {}, {}, {4: 1.0}],
    )
    rows = weighted_rows(table, matches, torch.Generator().manual_seed(0))
    assert torch.equal(rows[[0, 4]].view(torch.int32), table[[1, 4]].view(torch.int32))
    torch.testing.assert_close(rows[1], 0.25 * table[0] + 0.75 * table[3])
    assert rows[2].abs().sum() > 0
    assert not rows[3].any()
    bias = torch.arange(5.0)
    assert weighted_rows(bias, matches, torch.Generator())[[0, 1, 3, 4]].tolist() == [
        1.0, 2.25, 0.0, 4.0
    ]  # fmt: skip


def test_random_rows_have_the_deviation_of_the_source():
    table = torch.randn(400, 30) * 0.3
    matches = Matches.of(["random"] * 1000, [{}] * 1000)
    rows = weighted_rows(table, matches, torch.Generator().manual_seed(1))
    assert float(rows.std()) == pytest.approx(float(table.std()), rel=0.02)
    again = weighted_rows(table, matches, torch.Generator().manual_seed(1))
    assert torch.equal(rows, again)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_onto_its_own_tokenizer_it_is_the_identity(tmp_path, architecture):
    source = model_for(
        of_words("unigram", tmp_path / "source", WORDS, "abc"), architecture=architecture
    )
    report = transplant(source, source, tmp_path / "out")
    before, after = weights_of(source), weights_of(tmp_path / "out")
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor.view(torch.int32), after[name].view(torch.int32)), name
    assert report.before == report.after
    assert set(report.kinds) == {"special", "exact"}


@pytest.mark.parametrize("kind", KINDS)
def test_onto_its_own_tokenizer_of_any_kind(tmp_path, kind):
    source = model_for(of_words(kind, tmp_path / "source", WORDS, "abc"))
    transplant(source, source, tmp_path / "out")
    before, after = weights_of(source), weights_of(tmp_path / "out")
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    config = [json.loads((f / "config.json").read_text()) for f in (source, tmp_path / "out")]
    for name in ("vocab_size", "pad_token_id", "max_position_embeddings"):
        assert config[0][name] == config[1][name]


@pytest.mark.parametrize(("kind", "into"), [*zip(KINDS, [*KINDS[1:], KINDS[0]], strict=True)])
def test_hidden_states_of_the_source_language_stay(tmp_path, kind, into):
    source = model_for(of_words(kind, tmp_path / "source", WORDS, "xyz"), seed=3)
    target = of_words(into, tmp_path / "target", [*reversed(WORDS), "nyumba"], "qrs")
    transplant(source, target, tmp_path / "out")
    states = []
    for folder in (source, tmp_path / "out"):
        model, tokenizer = opened(folder)
        ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
        assert ids.shape == (1, 7)
        with torch.no_grad():
            states.append(model.base_model(input_ids=ids).last_hidden_state)
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ["xlm-r", "bert", "modernbert"])
def test_another_padding_id_shifts_positions_not_states(tmp_path, architecture):
    """RoBERTa counts positions from the padding id on: 1 in the source, 3 in the target."""
    source = model_for(of_words("unigram", tmp_path / "a", WORDS), architecture=architecture)
    target = wordpiece(tmp_path / "b", [*WORDS, "nyumba"])
    transplant(source, target, tmp_path / "out")
    logits = []
    for folder in (source, tmp_path / "out"):
        model, tokenizer = opened(folder)
        wanted = [tokenizer(word)["input_ids"][1] for word in WORDS]
        ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
        with torch.no_grad():
            logits.append(model(input_ids=ids).logits[..., wanted])
    torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=1e-5)


def test_what_is_initialized(tmp_path):
    source = model_for(of_words("unigram", tmp_path / "source", WORDS), seed=5)
    states = {}
    for what in ("both", "body", "embeddings", "none"):
        settings = TransplantConfig(initialize=what)
        transplant(source, source, tmp_path / what, settings)
        states[what] = weights_of(tmp_path / what)
    own = weights_of(source)
    words, body = "roberta.embeddings.word_embeddings.weight", "lm_head.dense.weight"
    assert [w for w in states if torch.equal(states[w][words], own[words])] == [
        "both",
        "embeddings",
    ]
    assert [w for w in states if torch.equal(states[w][body], own[body])] == ["both", "body"]
    bias = "lm_head.bias"
    assert [w for w in states if torch.equal(states[w][bias], own[bias])] == ["both", "embeddings"]


@pytest.mark.parametrize(("positions", "word"), [(32, "Reduced from"), (100, "Extended from")])
@pytest.mark.parametrize("architecture", ["xlm-r", "albert", "modernbert"])
def test_positions_are_cut_or_extended(tmp_path, architecture, positions, word):
    source = model_for(of_words("unigram", tmp_path / "s", WORDS), architecture=architecture)
    report = transplant(source, source, tmp_path / "out", TransplantConfig(max_positions=positions))
    assert report.notes[0].startswith(word)
    assert Encoder.from_pretrained(str(tmp_path / "out")).max_positions == positions
    ids = torch.tensor([[0, 4, 5, 6, 7, 2]])
    with torch.no_grad():
        before, after = (opened(f)[0](input_ids=ids).logits for f in (source, tmp_path / "out"))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-5)


def test_the_report(tmp_path):
    source = model_for(of_words("bytes", tmp_path / "source", WORDS), extra=3)
    target = of_words("unigram", tmp_path / "target", [*WORDS, "nyumba", "Dog"])
    dictionary = tmp_path / "en-sw.txt"
    dictionary.write_text("house nyumba\nhouse nyumba\n")
    report = transplant(
        source, target, tmp_path / "out", TransplantConfig(dictionaries=(str(dictionary),))
    )
    assert report.kinds == {"special": 5, "marker": 6, "case": 1, "dictionary": 1}
    assert report.examples["dictionary"] == ["▁nyumba ← Ġhouse"]
    assert {kind: len(own) for kind, own in report.examples.items()} == {
        "special": 5, "marker": 5, "case": 1, "dictionary": 1
    }  # fmt: skip
    assert "3 embeddings" in report.notes[1]
    kept = json.loads((tmp_path / "out/transplant.json").read_text())
    assert kept["kinds"] == report.kinds
    assert kept["dictionaries"][0]["dropped"] == {"duplicate": 1}
    model, _ = opened(tmp_path / "out")
    assert report.after.parameters == sum(weight.numel() for weight in model.parameters())
    assert report.after.bytes == 4 * report.after.parameters


def test_dictionary_rows_are_the_translations(tmp_path):
    source = model_for(of_words("bytes", tmp_path / "source", WORDS))
    target = of_words("unigram", tmp_path / "target", ["nyumba"])
    (tmp_path / "d").write_text("house nyumba\ndog nyumba\n")
    settings = TransplantConfig(dictionaries=(str(tmp_path / "d"),))
    transplant(source, target, tmp_path / "out", settings)
    (model, old), (new, tokens) = opened(source), opened(tmp_path / "out")
    ids = old.convert_tokens_to_ids(["Ġhouse", "Ġdog"])
    own = tokens.convert_tokens_to_ids("▁nyumba")
    for module in ("get_input_embeddings", "get_output_embeddings"):
        before, after = getattr(model, module)().weight, getattr(new, module)().weight
        torch.testing.assert_close(after[own], before[ids].mean(0))
    bias = model.lm_head.bias[ids].mean()
    torch.testing.assert_close(new.lm_head.bias[own], bias)


def test_bad_sources_and_targets(tmp_path):
    good = model_for(of_words("unigram", tmp_path / "good", WORDS))
    out = tmp_path / "out"
    no_mask = of_words("unigram", tmp_path / "no-mask", WORDS)
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        if (no_mask / file).is_file():
            kept = json.loads((no_mask / file).read_text())
            kept.pop("mask_token", None)
            (no_mask / file).write_text(json.dumps(kept))
    with pytest.raises(IsoglotError, match="no-mask: its tokenizer has no mask token"):
        transplant(good, no_mask, out)
    with pytest.raises(IsoglotError, match="There is no folder"):
        transplant(good, tmp_path / "nowhere", out)
    with pytest.raises(ModelError, match="holds no model"):
        transplant(no_mask, good, out)
    small = of_words("unigram", tmp_path / "small", WORDS)
    model_for(small)
    of_words("unigram", small, [*WORDS, "more"])
    with pytest.raises(ModelError, match="11 embeddings and a tokenizer of 12"):
        transplant(small, good, out)
    decoder = of_words("bytes", tmp_path / "decoder", WORDS)
    config = GPT2Config(
        n_layer=1, n_embd=8, n_head=1, vocab_size=300, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(decoder)
    with pytest.raises(ModelError, match="is a gpt2 model, not a masked language model") as error:
        transplant(decoder, good, out)
    assert len(str(error.value)) < 400
    assert not out.exists()
