"""The card of an adapted encoder, and pushing it to a small hub on loopback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import ModelCard as HubCard

from isoglot.adaptation.comparison import (
    ALIGNMENT,
    BITS,
    RETRIEVAL,
    TOKENS,
    VECTORS,
    AdaptScores,
    Choice,
    Comparison,
)
from isoglot.adaptation.export import SUFFIX, HubError, adapted_card, check_hub, push_folders
from isoglot.models.model_card import DataRow, ModelCard
from tests.adaptation.fake_hub import TOKEN, running_hub


def compared(metric, where, before, after, low, high):
    return Comparison(
        metric=metric, where=where, before=before, after=after, low=low, high=high, count=100
    )


SCORES = AdaptScores(
    comparisons=(
        compared(BITS, "en", 1.5, 1.53, 0.01, 0.05),
        compared(BITS, "no", 4.0, 2.0, -2.2, -1.8),
        compared(RETRIEVAL, "en→no", 0.1, 0.6, 0.4, 0.6),
        compared(VECTORS, "en-no", 0.05, 0.55, 0.4, 0.6),
        compared(ALIGNMENT, "de-en", 0.5, 0.45, -0.1, 0.01),
        compared(TOKENS, "no", 2.0, 2.0, 0.0, 0.0),
    ),
    choices=(Choice(what="layer", choice="layer 3", data="70 development pairs"),),
    speed=(800.4, 1200.0),
)
CARD = ModelCard(
    name="adapted",
    languages=("no", "en"),
    objectives=("moco", "mlm"),
    tokens_seen=1000,
    init_from="FacebookAI/xlm-roberta-base",
    license="mit",
    data=(DataRow("no", "text", 10, 200),),
    recipe="adapt",
)
# huggingface_hub passes file objects in a way that its HTTP library is giving up
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.mark.parametrize("kind", ["fill-mask", "sentence-similarity"])
def test_the_hub_reads_languages_license_base_model_and_scores(kind):
    card = HubCard(adapted_card(CARD, SCORES, kind, pooling="the mean state"))
    data: Any = card.data
    assert data.language == ["en", "no"], "and not a boolean"
    assert data.license == "mit"
    assert data.base_model == "FacebookAI/xlm-roberta-base"
    assert data.pipeline_tag == kind
    assert data.model_name == "adapted"
    found = {(one.metric_type, one.dataset_config): one for one in data.eval_results}
    assert found["bits-per-character", "no"].metric_value == 2.0
    assert found["bits-per-character", "no"].task_type == "fill-mask"
    retrieved = "en→no" if kind == "fill-mask" else "en-no"
    assert found["accuracy", retrieved].metric_value == (0.6 if kind == "fill-mask" else 0.55)
    assert found["alignment-error-rate", "de-en"].dataset_type == "gold-word-alignments"
    assert len(found) == 4, "tokens per word are no score of the hub"


def test_a_folder_of_this_machine_is_no_base_model_of_the_hub(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    card = HubCard(adapted_card(replace(CARD, init_from=str(tmp_path)), SCORES, "fill-mask"))
    assert card.data.to_dict().get("base_model") is None
    assert str(tmp_path) in card.text


def test_the_card_has_the_table_and_what_was_chosen():
    text = adapted_card(CARD, SCORES, "fill-mask")
    assert "| bits per character | en | 1.500 | 1.530 | +2.0 % (+0.7 to +3.3) | worse |" in text
    assert "Chosen on 70 development pairs." in text
    assert "`adapt`, with all settings in recipe.yaml" in text


@pytest.fixture(autouse=True)
def online(monkeypatch):
    """Other tests must not reach the hub; these have their own."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)


@pytest.fixture
def hub(monkeypatch):
    with running_hub() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield found


@pytest.fixture
def folders(tmp_path):
    for name in ("model", "sentence-transformers"):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "README.md").write_text(f"---\nlanguage: sw\n---\n# {name}\n")
        (tmp_path / name / "model.safetensors").write_bytes(bytes(range(256)) * 40)
        (tmp_path / name / "1_Pooling" / "config.json").write_text("{}")
    return {"": tmp_path / "model", SUFFIX: tmp_path / "sentence-transformers"}


def test_both_folders_are_uploaded_whole(hub, folders):
    check_hub("me/adapted")
    addresses = push_folders("me/adapted", folders)
    assert addresses == [
        f"{hub.address}/me/adapted",
        f"{hub.address}/me/adapted-sentence-transformers",
    ]
    for suffix, folder in folders.items():
        uploaded = hub.files[f"me/adapted{suffix}"]
        there = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.*")}
        assert uploaded == there
        assert hub.private[f"me/adapted{suffix}"]


def test_a_second_push_replaces_files(hub, folders):
    push_folders("me/adapted", folders)
    (folders[""] / "README.md").write_text("---\nlanguage: ha\n---\n# new\n")
    push_folders("me/adapted", folders)
    assert b"# new" in hub.files["me/adapted"]["README.md"]


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("hf_wrong", r"does not take the token \(401\).*HF_TOKEN"),
        ("", "there is no token.*hf auth"),
    ],
)
def test_a_wrong_token_is_a_sentence_before_any_work(hub, monkeypatch, tmp_path, token, said):
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(HubError, match=said) as error:
        check_hub("me/adapted")
    assert "\n" not in str(error.value)


def test_a_token_that_may_not_write(hub, folders):
    hub.may_write = False
    with pytest.raises(HubError, match=r"does not let this token write \(403\)"):
        push_folders("me/adapted", folders)


def test_no_network(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(HubError, match=r"does not answer \(.*refused\).*leave --push-to-hub out"):
        check_hub("me/adapted")


@pytest.mark.parametrize("name", ["a/b/c", "my model", "x" * 200, ""])
def test_a_name_that_is_none(name):
    with pytest.raises(HubError, match=r"is not a repository name .*OWNER/NAME"):
        check_hub(name)
