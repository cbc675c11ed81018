from __future__ import annotations

import pytest

from isoglot.adaptation.folder import StepRecords, hash_files, hash_folder, hash_model


class Work:
    """Counts how often it is done."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"times": self.times}


def test_a_step_is_done_once_for_its_inputs(tmp_path):
    work, steps = Work(), StepRecords(tmp_path)
    assert steps.run("before", {"model": "a"}, work) == {"times": 1}
    assert steps.run("before", {"model": "a"}, work) == {"times": 1}
    assert steps.run("before", {"model": "b"}, work) == {"times": 2}
    assert steps.run("after", {"model": "b"}, work) == {"times": 3}
    assert steps.result("before", {"model": "a"}) is None, "the record is of the last inputs"


def test_a_step_whose_output_is_gone_is_done_again(tmp_path):
    work, steps, output = Work(), StepRecords(tmp_path / "steps"), tmp_path / "model"
    output.mkdir()
    steps.run("export", {}, work, [output])
    steps.run("export", {}, work, [output])
    assert work.times == 1
    output.rmdir()
    steps.run("export", {}, work, [output])
    assert work.times == 2


def test_an_interrupted_step_leaves_no_record(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    steps = StepRecords(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        steps.run("train", {}, interrupted)
    assert steps.result("train", {}) is None
    assert steps.seconds("train") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"inputs": 3}', b"\xff"])
def test_a_damaged_record_counts_as_none(tmp_path, content):
    work, steps = Work(), StepRecords(tmp_path)
    steps.run("before", {}, work)
    (tmp_path / "before.json").write_bytes(content)
    steps.run("before", {}, work)
    assert work.times == 2


def test_hashes_change_with_names_and_contents(tmp_path):
    (tmp_path / "text").mkdir()
    file = tmp_path / "text" / "sw.txt"
    file.write_text("habari")
    before = hash_folder(tmp_path)
    file.write_text("habari!")
    changed = hash_files([file])
    file.rename(tmp_path / "text" / "en.txt")
    found = {before, changed, hash_folder(tmp_path), hash_folder(tmp_path / "text")}
    assert len(found) == 3, "the last two have the same file"


def test_the_card_of_a_model_does_not_change_its_hash(tmp_path):
    for name in ("config.json", "model.safetensors", "README.md", "recipe.yaml"):
        (tmp_path / name).write_text(name)
    before = hash_model(tmp_path)
    (tmp_path / "README.md").write_text("another")
    assert hash_model(tmp_path) == before
    (tmp_path / "config.json").write_text("another")
    assert hash_model(tmp_path) != before
