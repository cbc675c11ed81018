"""Pushing to the hub, against a small one on loopback: right and wrong tokens, no network."""

import pytest

from isoglot.adaptation import push
from isoglot.adaptation.push import HubError, check_hub, push_folders
from tests.adaptation.fake_hub import TOKEN, running_hub

# huggingface_hub passes file objects in a way that its HTTP library is giving up
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


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
    return {"": tmp_path / "model", push.SUFFIX: tmp_path / "sentence-transformers"}


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
    with pytest.raises(HubError, match=r"is no name of a repository .*USER/NAME"):
        check_hub(name)
