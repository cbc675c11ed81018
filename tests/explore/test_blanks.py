"""Blanks: what is parsed, what a model reads, and predictions against plain transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from isoglot.errors import IsoglotError, ModelError
from isoglot.explore.blanks import (
    ALONE,
    TRANSLATION_ALONE,
    WITH_TRANSLATION,
    BlankFiller,
    Cloze,
    Sentence,
    parse_clozes,
)
from isoglot.explore.pair_layouts import layouts_of
from isoglot.explore.session import ExploreModel
from isoglot.models import language_embeddings
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.tlm import TLM
from isoglot.types import IGNORE, MaskRule, Pair
from tests.evaluation.tiny_tokenizers import make_tokenizer, save_model

if TYPE_CHECKING:
    from pathlib import Path

TRANSLATION = "Habari ya asubuhi, rafiki yangu"
CLOZE = Cloze(
    Sentence("the quick ___ fox jumps ___ the dog", "en"),
    Sentence(TRANSLATION, "sw"),
)
BRACKETS = "the quick [MASK] fox jumps [MASK] the dog"


@pytest.fixture(scope="module", params=["wordpiece", "unigram", "bytes"])
def model(request, tmp_path_factory) -> ExploreModel:
    place: Path = tmp_path_factory.mktemp("blanks") / "model"
    save_model(make_tokenizer(request.param), place, max_position_embeddings=96)
    return ExploreModel("mine", place, device="cpu")


def test_lines_languages_translations_and_mask_tokens():
    text = "sw: Paka ___ maziwa\n\nzh-Hant: 我___你 ||| en: I ___\n".replace("I ___", "I love you")
    assert parse_clozes(text) == [
        Cloze(Sentence("Paka ___ maziwa", "sw")),
        Cloze(Sentence("我___你", "zh_Hant"), Sentence("I love you", "en")),
    ]
    (note,) = parse_clozes("Note: a <mask> here ||| Kumbuka: hapa", ("<mask>", "[MASK]"))
    assert note.sentence == Sentence("Note: a  ___ here")
    assert note.translation == Sentence("Kumbuka: hapa")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no sentence"),
        ("the ___ cat\na cat", "Line 2 has no blank"),
        ("a cat ||| the ___", "Line 1 has no blank. .* before the"),
        ("a ___ ||| the ___", "Line 1 has a blank in the translation"),
    ],
)
def test_lines_that_cannot_be_filled_are_named(text, said):
    with pytest.raises(IsoglotError, match=said):
        parse_clozes(text)


def by_token(model: ExploreModel, probabilities: torch.Tensor) -> list[Any]:
    """The five best tokens at each of some positions, as the filler shows them."""
    filler = BlankFiller(model)
    found = []
    for row in probabilities:
        order = sorted(range(len(row)), key=lambda token: -float(row[token]))[:5]
        found.append([(filler._shown(token), float(row[token])) for token in order])
    return found


def same(found: Any, expected: Any) -> None:
    for blank, wanted in zip(found, expected, strict=True):
        assert [c.text for c in blank] == [text for text, _ in wanted]
        assert [c.probability for c in blank] == pytest.approx([p for _, p in wanted], abs=1e-5)


def test_alone_is_what_transformers_predicts(model):
    """The pipeline that any user writes: text with mask tokens, softmax at them."""
    plain = AutoModelForMaskedLM.from_pretrained(model.folder).eval()
    encoded = model.tokenizer(BRACKETS.replace(" [MASK]", "[MASK]"), return_tensors="pt")
    with torch.no_grad():
        logits = plain(input_ids=encoded["input_ids"]).logits[0]
    at = (encoded["input_ids"][0] == model.tokenizer.mask_token_id).nonzero()[:, 0]
    assert len(at) == 2
    filled = BlankFiller(model).fill(Cloze(CLOZE.sentence))
    assert list(filled.by_way) == [ALONE]
    same(filled.by_way[ALONE], by_token(model, logits[at].softmax(dim=-1)))


def test_with_translation_is_tlm_in_transformers(model):
    """[CLS] a [SEP] [SEP] b [SEP], positions from 0 again: the sequence written out by hand."""
    plain = AutoModelForMaskedLM.from_pretrained(model.folder).eval()
    tokenizer = model.tokenizer
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    first, second = (
        tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in (BRACKETS.replace(" [MASK]", "[MASK]"), TRANSLATION)
    )
    ids = [cls, *first, sep, sep, *second, sep]
    positions = [*range(len(first) + 2), *range(len(second) + 2)]
    with torch.no_grad():
        logits = plain(
            input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions])
        ).logits[0]
    at = [n for n, token in enumerate(ids) if token == tokenizer.mask_token_id]
    filled = BlankFiller(model).fill(CLOZE)
    same(filled.by_way[WITH_TRANSLATION], by_token(model, logits[at].softmax(dim=-1)))


def test_sequences_are_those_of_training(model):
    """As the objectives build them for the pair whose chosen tokens are those of the blanks."""
    filler = BlankFiller(model)
    sequences, notes = filler.sequences(CLOZE)
    assert notes == []
    vocabulary = filler.vocabulary
    ids = sequences[ALONE].ids[1:-1]
    places = np.flatnonzero(ids == vocabulary.mask)
    right = np.where(ids == vocabulary.mask, vocabulary.ordinary[7], ids).astype(np.int32)
    other = sequences[TRANSLATION_ALONE].ids[1 : -1 - len(places)]
    pair = Pair(first=right, second=other, first_language=-1, second_language=-1)
    for seed in range(4000):  # until the draw masks the tokens that the blanks stand for
        trained = CAMLM(rate=2 / len(right)).build(pair, vocabulary, np.random.default_rng(seed))[1]
        if trained.positions[-2:].tolist() == sequences[TRANSLATION_ALONE].positions[-2:].tolist():
            break
    shown = sequences[TRANSLATION_ALONE]
    assert shown.rule == trained.rule == MaskRule.TRANSLATE
    for name in ("ids", "positions", "languages", "sentences", "roles"):
        assert getattr(shown, name).tolist() == getattr(trained, name).tolist(), name
    whole = TLM().build(pair, vocabulary, np.random.default_rng(0))[0]
    joined = sequences[WITH_TRANSLATION]
    masked = joined.ids == vocabulary.mask
    original = np.where(whole.targets != IGNORE, whole.targets, whole.ids)
    assert original[~masked].tolist() == joined.ids[~masked].tolist()
    assert whole.positions.tolist() == joined.positions.tolist()


def test_from_the_translation_alone_no_own_word_matters(model):
    """Other words of the sentence change the two other ways, and nothing here."""
    filler = BlankFiller(model)
    changed = Cloze(Sentence("the quick ___ jumps fox ___ dog the", "en"), CLOZE.translation)
    before, after = filler.fill(CLOZE).by_way, filler.fill(changed).by_way
    assert before[ALONE] != after[ALONE]
    assert before[WITH_TRANSLATION] != after[WITH_TRANSLATION]
    assert before[TRANSLATION_ALONE] == after[TRANSLATION_ALONE]
    other = Cloze(CLOZE.sentence, Sentence("Habari ya rafiki, asubuhi yangu", "sw"))
    assert filler.fill(other).by_way[ALONE] == before[ALONE]
    assert filler.fill(other).by_way[TRANSLATION_ALONE] != before[TRANSLATION_ALONE]


def test_translation_alone_is_a_restricted_attention_in_transformers(model):
    """Slots see the translation and each other, the translation sees itself: a mask by hand."""
    plain = AutoModelForMaskedLM.from_pretrained(model.folder, attn_implementation="eager").eval()
    tokenizer = model.tokenizer
    first, read = (
        tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in (BRACKETS.replace(" [MASK]", "[MASK]"), TRANSLATION)
    )
    blanks = [n for n, token in enumerate(first) if token == tokenizer.mask_token_id]
    ids = [tokenizer.cls_token_id, *read, tokenizer.sep_token_id, *[tokenizer.mask_token_id] * 2]
    length = len(ids) - 2
    positions = [*range(length), *(length + 1 + blank for blank in blanks)]
    sees = torch.ones(len(ids), len(ids), dtype=torch.bool)
    sees[:length, length:] = False
    with torch.no_grad():
        logits = plain(
            input_ids=torch.tensor([ids]),
            position_ids=torch.tensor([positions]),
            attention_mask=torch.where(sees, 0.0, -1e30)[None, None],
        ).logits[0]
    filled = BlankFiller(model).fill(CLOZE)
    same(filled.by_way[TRANSLATION_ALONE], by_token(model, logits[-2:].softmax(dim=-1)))


def test_long_sentences_are_told(model):
    long = Cloze(CLOZE.sentence, Sentence("rafiki yangu mpendwa " * 40, "sw"))
    filled = BlankFiller(model).fill(long)
    assert list(filled.by_way) == [ALONE]
    assert len(filled.notes) == 2
    assert all("longer than the model's 96 positions" in note for note in filled.notes)
    with pytest.raises(IsoglotError, match="longer than the model's 96 positions"):
        BlankFiller(model).fill(Cloze(Sentence("the fox ___ " * 60)))
    with pytest.raises(IsoglotError, match="longer than the model's 96 positions"):
        BlankFiller(model).fill(Cloze(Sentence("___ " + "x " * 1_000_000)))


def test_a_model_without_a_head_is_refused_with_a_sentence(tmp_path):
    tokenizer = make_tokenizer("wordpiece")
    folder = save_model(tokenizer, tmp_path / "bare")
    AutoModelForMaskedLM.from_pretrained(folder).bert.save_pretrained(folder)
    with pytest.raises(ModelError, match="bare has no LM head to fill blanks with"):
        BlankFiller(ExploreModel("bare", folder, device="cpu")).fill(CLOZE)


def test_layouts_of_a_run_are_those_of_its_recipe(tmp_path):
    folder = tmp_path / "run" / "model"
    folder.mkdir(parents=True)
    assert "default settings" in layouts_of(folder).source
    assert layouts_of(folder).untrained == ""
    assert (layouts_of(folder).tlm, layouts_of(folder).camlm) == (TLM(), CAMLM())
    recipe = folder.parent / "recipe.yaml"
    recipe.write_text(
        "objectives:\n  tlm: {positions: continuous, separator: single, masking: {rate: 0.3}}\n"
        "  camlm: {positions: reset, slots: inline}\n  mine: {class: no.such:Thing}\n"
    )
    found = layouts_of(folder)
    assert found.tlm == TLM(positions="continuous", separator="single")
    assert found.camlm == CAMLM(positions="reset")
    assert "for TLM and CAMLM as in the model's recipe" in found.source
    assert found.untrained == ""
    recipe.write_text("objectives: {mlm: {}, tlm: {}}")
    assert "has no CAMLM: it was not trained" in layouts_of(folder).untrained
    for broken in ("objectives: [tlm]", "objectives: {tlm: {positions: sideways}}", "::: {", ""):
        recipe.write_text(broken)
        assert layouts_of(folder).tlm == TLM()


def test_slots_have_the_language_embeddings_of_their_training(tmp_path):
    """ERNIE-M's: added to slots by their language, to no other token."""
    folder = save_model(make_tokenizer("wordpiece"), tmp_path / "slots")
    model = ExploreModel("slots", folder, device="cpu")
    without = BlankFiller(model).fill(CLOZE).by_way
    table = torch.nn.Embedding(2, 32)
    language_embeddings.save(folder, table, ["en", "sw"], used_on="slots")
    filler = BlankFiller(model)
    found = filler.fill(CLOZE).by_way
    assert found[ALONE] == without[ALONE]
    assert found[WITH_TRANSLATION] == without[WITH_TRANSLATION]
    assert found[TRANSLATION_ALONE] != without[TRANSLATION_ALONE]
    unknown = Cloze(Sentence(CLOZE.sentence.text, "fr"), CLOZE.translation)
    assert filler.fill(unknown).by_way[TRANSLATION_ALONE] == without[TRANSLATION_ALONE]
    assert model.encoder.languages is None


@pytest.mark.parametrize(
    ("kind", "whole", "part"),
    [("wordpiece", "ove", "##o"), ("unigram", "▁ya", "o"), ("bytes", "Ġthe", "o")],
)
def test_candidates_that_continue_a_word_have_an_ellipsis(kind, whole, part, tmp_path):
    folder = save_model(make_tokenizer(kind), tmp_path / "model")
    model = ExploreModel("mine", folder, device="cpu")
    filler = BlankFiller(model)
    tokens = model.tokenizer.convert_tokens_to_ids([whole, part])
    assert model.tokenizer.unk_token_id not in tokens
    assert [filler._shown(token) for token in tokens] == [whole.lstrip("▁Ġ"), "…o"]
