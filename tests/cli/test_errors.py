"""A user error is one sentence on standard error, with exit code 1 and no traceback."""

from __future__ import annotations

import pytest

CASES = {
    "a prepare file that is missing": (
        ["prepare", "none.yaml", "-o", "corpus"],
        "none.yaml cannot be read: No such file or directory.",
    ),
    "a raw file that is missing": (
        [
            "prepare",
            "prepare.yaml",
            "-o",
            "corpus",
            "--set",
            "sources.text.files.aa=[raw/text/aaa.txt]",
        ],
        "raw/text/aaa.txt: there is no such file; did you mean 'aa.txt'?",
    ),
    "two tokenizers": (
        ["prepare", "prepare.yaml", "-o", "corpus", "--set", "tokenizer.folder=encoder"],
        "tokenizer: `folder` names a tokenizer to use as it is; vocab_size would be for training",
    ),
    "an option that a format does not have": (
        ["prepare", "prepare.yaml", "-o", "corpus", "--set", "sources.text.options={field: body}"],
        "sources.text.options.field: 'lines' has no such option",
    ),
    "a base folder whose variable is not set": (
        ["prepare", "prepare.yaml", "-o", "corpus", "--set", "base=$NO_SUCH_VARIABLE"],
        "base: '$NO_SUCH_VARIABLE' names an environment variable that is not set.",
    ),
    "an unknown key in a prepare file": (
        ["prepare", "prepare.yaml", "-o", "corpus", "--set", "tokeniser.size=1"],
        "--set: tokeniser: unknown setting; did you mean 'tokenizer'?",
    ),
    "an unknown key in a recipe": (
        ["pretrain", "bad.yaml", "--corpus", "corpus"],
        "bad.yaml:2: batch.row: unknown setting; did you mean 'rows'?",
    ),
    "an unknown recipe": (
        ["pretrain", "tinny"],
        "there is no recipe 'tinny'; did you mean 'tiny'?",
    ),
    "no corpus": (
        ["pretrain", "xlm"],
        "the recipe 'xlm' names no corpus: give one with --corpus FOLDER",
    ),
    "a corpus that is not there": (
        ["pretrain", "few.yaml", "--corpus", "nowhere"],
        "nowhere: is not a prepared corpus",
    ),
    "a model that is not there": (
        ["evaluate", "nowhere", "--pairs", "raw/pairs/aa-bb.tsv"],
        "There is no folder nowhere here, and the Hugging Face hub does not give a model",
    ),
    "a corpus to show that is not there": (
        ["show", "corpus", "nowhere"],
        "nowhere: is not a prepared corpus",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_said_in_a_sentence(isoglot, raw, case):
    (raw / "bad.yaml").write_text("extends: few.yaml\nbatch: {row: 8}\n", encoding="utf-8")
    arguments, message = CASES[case]
    said = isoglot(*arguments)
    assert said.code == 1
    assert said.err.startswith("isoglot: ")
    assert message in said.err
    assert "Traceback" not in said.err + said.out
    assert said.out == ""


def test_a_developer_can_ask_for_the_traceback(isoglot, workdir, monkeypatch):
    monkeypatch.setenv("ISOGLOT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no recipe"):
        isoglot("pretrain", "tinny")


def test_wrong_usage_is_code_2(isoglot):
    said = isoglot("evaluate", "somewhere")
    assert said.code == 2
    assert "--pairs" in said.err
