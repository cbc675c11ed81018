from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from isoglot.adaptation.findings import describe_encoder, encoder_notes
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.look import look, other_language
from isoglot.adaptation.request import AdaptConfig
from isoglot.errors import CorpusError, ModelError


def test_the_encoder(looked, given):
    facts = looked.findings.encoder
    assert (facts.architecture, facts.num_layers, facts.hidden_size) == (
        "XLMRobertaForMaskedLM",
        2,
        32,
    )
    assert facts.vocabulary_size == len(AutoTokenizer.from_pretrained(given.encoder))
    assert facts.max_positions == 128
    assert facts.num_parameters - facts.num_body_parameters == 32 * facts.vocabulary_size
    assert facts.has_lm_head
    assert looked.told[0].startswith(f"{given.encoder}: XLMRobertaForMaskedLM, 2 layers × 32, 0.0M")


def test_languages_by_the_tokenizer_itself(looked, given):
    tokenizer = AutoTokenizer.from_pretrained(given.encoder)
    for code in ("en", "sw"):
        lines = (looked.folder.sample / f"{code}.txt").read_text("utf-8").splitlines()
        ids = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
        facts = looked.findings.languages[code]
        words = sum(len(line.split()) for line in lines)
        assert facts.tokens_per_word == pytest.approx(sum(map(len, ids)) / words)
        unknown = sum(one.count(tokenizer.unk_token_id) for one in ids)
        assert facts.unknown_share == pytest.approx(unknown / sum(map(len, ids)))
        data = looked.findings.text[code]
        assert data.longest_tokens == np.quantile([len(one) for one in ids], 0.99, method="higher")
        assert (facts.script, facts.spaced) == ("LATIN", True)
    worse, better = (looked.findings.languages[code].tokens_per_word for code in ("sw", "en"))
    assert worse > 1.5 * better


def test_counts_of_the_files(looked):
    """Lines are those that cleaning keeps, less the tests' own; tokens are nearly right."""
    english = Path(looked.config.text["en"][0]).read_text("utf-8").splitlines()
    tests = Path(looked.config.tests[0]).read_text("utf-8")
    tested = {text for line in tests.splitlines() for text in line.split("\t")}
    lines = [line for line in english if line]
    kept = [line for line in lines if line not in tested]
    data = looked.findings.text["en"]
    assert data.overlap == len(lines) - len(kept)
    assert data.overlap > 0
    assert (data.lines, data.characters) == (len(kept), sum(map(len, kept)))
    assert data.dropped == {"blank": len(english) - len(lines)}
    assert data.duplicate_share == pytest.approx(1 - len(set(kept)) / len(kept))
    tokenizer = AutoTokenizer.from_pretrained(looked.config.encoder)
    tokens = sum(len(tokenizer.encode(line, add_special_tokens=False)) for line in kept)
    assert data.tokens == pytest.approx(tokens, rel=0.02)


def test_facts_are_told_as_sentences(looked):
    _, english, swahili, pairs = looked.told
    assert english.startswith("en: 1,")
    assert "tokens per word, 0.00 % unknown" in english
    assert english.endswith("; 60 held out")
    assert "in the tests" in english
    assert swahili.startswith("sw: 800 lines")
    assert pairs.startswith("en-sw: 8")


def test_files_that_change_after_the_corpus_is_made(given, tmp_path):
    raw = tmp_path / "en.txt"
    raw.write_text(given.text("en").read_text("utf-8"), encoding="utf-8")
    config = AdaptConfig(encoder=str(given.encoder), text={"en": (str(raw),)}, heldout=20)
    folder = AdaptFolder(tmp_path / "out")
    before = look(config, folder)
    with raw.open("a", encoding="utf-8") as file:
        file.write("One more line.\n")
    changed = look(config, folder)
    assert changed.text["en"].lines == before.text["en"].lines + 1
    folder.corpus.mkdir()
    (folder.corpus / "manifest.json").touch()
    os.utime(raw, ns=(1, 1))
    with pytest.raises(CorpusError, match=r"en.txt: has changed since .* Choose another --out"):
        look(config, folder)


def test_lines_that_look_like_another_language():
    german = ["Der gute Lehrer liest heute einen langen Brief in der alten Schule."] * 3
    english = ["The good teacher reads a long letter in the old school."] * 9
    assert other_language("en", [*german, *english]) == (0.25, "de")
    assert other_language("en", english) == (0.0, None)
    assert other_language("en", []) == (0.0, None)


def test_what_of_the_folder_is_not_adapted_is_told(given, tmp_path):
    """The head of a classifier, and the modules of a sentence-transformers folder."""
    config = AutoConfig.from_pretrained(given.encoder, num_labels=3)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path / "classifier")
    shutil.copytree(given.encoder, tmp_path / "sentences")
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (tmp_path / "sentences/modules.json").write_text(json.dumps(modules))
    (tmp_path / "sentences/1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (tmp_path / "sentences/1_Pooling/config.json").write_text(json.dumps(pooling))
    said = {}
    for name, folder in (
        ("plain", given.encoder),
        ("classifier", tmp_path / "classifier"),
        ("sentences", tmp_path / "sentences"),
    ):
        said[name] = [*encoder_notes(describe_encoder(name, folder))]
    assert said["plain"] == []
    (told,) = said["classifier"]
    assert told == (
        "classifier is a XLMRobertaForSequenceClassification: its head is not kept, and the new "
        "encoder is a XLMRobertaForMaskedLM"
    )
    (told,) = said["sentences"]
    assert "its vectors (first token of the last layer) are scored before" in told


def test_a_tokenizer_with_more_tokens_than_the_encoder(given, tmp_path):
    """This is refused before the data are read."""
    shutil.copytree(given.encoder, tmp_path / "encoder")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "encoder")
    tokenizer.add_tokens(["a-new-word"])
    tokenizer.save_pretrained(tmp_path / "encoder")
    config = AdaptConfig(encoder=str(tmp_path / "encoder"), text={"en": (str(given.text("en")),)})
    told: list[str] = []
    with pytest.raises(ModelError, match=r"call model\.resize_token_embeddings\(501\) and save"):
        look(config, AdaptFolder(tmp_path / "out"), tell=told.append)
    assert len(told) == 1


def test_a_model_that_generates_text(tmp_path, given):
    from transformers import BartConfig, BartForConditionalGeneration

    shape = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    model = BartForConditionalGeneration(
        BartConfig(**shape, **heads, encoder_ffn_dim=16, decoder_ffn_dim=16)
    )
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"is an encoder-decoder, .*adapt takes an encoder"):
        describe_encoder("models/bart", tmp_path)
