"""The request: languages in any spelling, options, files, and the folder that belongs to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.request import AdaptConfig, claim, load_request, parse_named, unquoted
from isoglot.errors import CorpusError, RecipeError

CONFIG = AdaptConfig(encoder="m", text={"sw": ("a.txt",)}, hours=2.0)


def test_languages_in_any_spelling_have_one_code():
    config = AdaptConfig(
        encoder="m",
        text={"swh": ("a",), "Swahili": ("b",), "pt-BR": ("c",)},
        pairs={"eng-swa": ("d",), "en-sw": ("e",), "deu-en": ("f",)},
    )
    assert config.text == {"sw": ("a", "b"), "pt_BR": ("c",)}
    assert config.pairs == {"en-sw": ("d", "e"), "de-en": ("f",)}
    assert config.languages == ("sw", "pt_BR", "en", "de")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing to learn from"),
        (
            {"text": {"swahilli": ("a",)}},
            r"'swahilli' is not a language code.* did you mean 'Swahili'\?",
        ),
        ({"text": {"en-sw": ("a",)}}, "is not a language code"),
        ({"text": {"cz": ("a",)}}, "'cz' is not a language code"),
        ({"pairs": {"en": ("a",)}}, "'en' does not name two languages. Write --pairs en-sw=FILE"),
        ({"pairs": {"en-eng": ("a",)}}, "does not name two languages"),
        ({"pairs": {"en-sw": ("a",), "swa-en": ("b",)}}, "'swa-en' is also given as 'en-sw'"),
        ({"text": {"en": ("a",)}, "hours": 0.0}, "hours must be above 0"),
        ({"text": {"en": ("a",)}, "heldout": 3}, "heldout must be from 10"),
        ({"text": {"en": ("a",)}, "vocabulary": 0}, "vocabulary must be from 1"),
    ],
)
def test_requests_that_cannot_work(given, said):
    with pytest.raises(RecipeError, match=said):
        AdaptConfig(encoder="m", **given)


def test_what_follows_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.txt").touch()
    assert parse_named(["sw=a,b", "en=c", "sw=d", "de=https://x/a,b", "fr=a,b.txt"], "--text") == {
        "sw": ("a", "b", "d"),
        "en": ("c",),
        "de": ("https://x/a,b",),
        "fr": ("a,b.txt",),
    }
    with pytest.raises(CorpusError, match=r"sw=: names no file. Write --text sw=FILE, without a"):
        parse_named(["sw="], "--text")  # as of `--text sw= a.txt`
    for wrong in ("a.txt", "=a.txt"):
        with pytest.raises(CorpusError, match=r"names no language. Write --text sw=FILE"):
            parse_named([wrong], "--text")


def test_a_pattern_that_the_shell_expanded():
    said = unquoted(["raw/b.txt", "raw/c.txt"], {"sw": ("raw/a.txt",)})
    assert said.startswith("unexpected argument raw/b.txt and 1 more. ")
    assert "--text 'sw=raw/*.txt'" in said


def test_settings_in_a_file(tmp_path):
    file = tmp_path / "adapt.yaml"
    file.write_text(
        "encoder: m\ntext: {swh: a.txt, en: [b.txt, c.txt]}\nvocabulary: 500\ntests: t\n"
        "knowledge: tables\n"
    )
    found = load_request(file, ["hours=2"])
    assert found.knowledge == "tables"
    assert found.text == {"sw": ("a.txt",), "en": ("b.txt", "c.txt")}
    assert (found.vocabulary, found.hours, found.tests) == (500, 2.0, ("t",))
    file.write_text("encoder: m\ntexts: {sw: a.txt}\n")
    with pytest.raises(RecipeError, match=r"adapt.yaml:2: texts: unknown setting; did you mean"):
        load_request(file)
    with pytest.raises(RecipeError, match=r"there is no file .*none.yaml"):
        load_request(tmp_path / "none.yaml")


def test_a_folder_belongs_to_one_request(tmp_path):
    folder = AdaptFolder(tmp_path / "out")
    assert claim(folder, CONFIG) is None
    assert claim(folder, replace(CONFIG, workers=3)) is None
    assert load_request(folder.request) == CONFIG
    # nothing was done but planning
    assert claim(folder, replace(CONFIG, hours=3.0)) == (
        f"{folder.path}: planned anew, since hours was 2.0 and is 3.0."
    )
    folder.corpus.mkdir()
    with pytest.raises(RecipeError, match=r"another request: hours was 3.0 and is 2.0. Give the"):
        claim(folder, CONFIG)
    with pytest.raises(RecipeError, match=r"text was \w+=a.txt and is \w+=b.txt"):
        claim(folder, replace(CONFIG, hours=3.0, text={"sw": ("b.txt",)}))


def test_knowledge_is_part_of_the_request(tmp_path):
    folder = AdaptFolder(tmp_path / "out")
    claim(folder, CONFIG)
    text = folder.request.read_text("utf-8")
    assert "knowledge: null\n" in text
    folder.request.write_text(text.replace("knowledge: null\n", ""), "utf-8")
    folder.corpus.mkdir()
    assert claim(folder, CONFIG) is None, "a request from before there was knowledge continues"
    with pytest.raises(RecipeError, match=r"knowledge was not set and is tables"):
        claim(folder, replace(CONFIG, knowledge="tables"))


def test_a_folder_of_something_else(tmp_path):
    Path(tmp_path / "photo.jpg").touch()
    with pytest.raises(RecipeError, match=r"is not the folder of an adaptation .* another --out"):
        claim(AdaptFolder(tmp_path), CONFIG)
    assert not (tmp_path / "adapt.yaml").exists()
