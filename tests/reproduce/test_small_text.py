"""Generated languages translate each other character by character."""

import json
import unicodedata

import pytest
from reproduce.small_tasks import SIZES, TASKS
from reproduce.small_text import said_in

from isoglot.corpus.scripts import scripts_of
from isoglot.tasks import find_task


@pytest.mark.parametrize(
    "language", ["de", "vi", "sw", "ru", "ar", "hi", "zh", "ja", "th", "el", "ko"]
)
def test_a_language_has_its_script_and_the_same_places(language):
    text = "The good doctor bought 3 newspapers."
    said = said_in(language, text)
    assert len(said) == len(text)
    assert said != text
    letters = [letter for letter in said if letter.isalpha()]
    assert {unicodedata.name(letter).split()[0].split("-")[0] for letter in letters} <= set(
        scripts_of(language)
    )
    assert unicodedata.normalize("NFKC", said) == said


def test_no_two_languages_are_the_same():
    codes = ("en", "de", "fr", "sw", "vi", "ru", "bg", "ar", "ur", "hi", "ne", "zh", "ja")
    assert len({said_in(code, "The good doctor bought newspapers.") for code in codes}) == 13


@pytest.mark.parametrize("name", TASKS)
def test_tasks_find_their_files(name, tmp_path):
    TASKS[name](tmp_path)
    task = find_task("squad" if name == "mlqa-translate-train" else name)
    splits = task.splits(tmp_path)
    assert {split.name for split in splits} >= (
        {"train"} if name == "mlqa-translate-train" else {"test"} if name == "xquad" else {"dev"}
    )
    for split in splits:
        assert len(task.read(split)) == SIZES[split.name], split


def test_answers_are_in_their_contexts(tmp_path):
    TASKS["mlqa"](tmp_path)
    file = tmp_path / "MLQA_V1/test/test-context-ar-question-ar.json"
    for article in json.loads(file.read_text("utf-8"))["data"]:
        (paragraph,) = article["paragraphs"]
        (question,) = paragraph["qas"]
        (answer,) = question["answers"]
        start = answer["answer_start"]
        assert paragraph["context"][start : start + len(answer["text"])] == answer["text"] != ""
