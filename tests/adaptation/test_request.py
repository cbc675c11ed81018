from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isoglot.adaptation.config import AdaptConfig
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.request import claim, load_request
from isoglot.errors import RecipeError

CONFIG = AdaptConfig(encoder="m", text={"sw": ("a.txt",)}, hours=2.0)


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
