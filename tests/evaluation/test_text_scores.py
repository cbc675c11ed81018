"""Text files by language, code lengths on disk, and the change between two models."""

from __future__ import annotations

import io

import pytest

from isoglot.errors import CorpusError
from isoglot.evaluation.bits_per_character import change
from isoglot.evaluation.settings import FeatureConfig
from isoglot.evaluation.text_scores import compare_lengths, score_texts, text_files, write_lengths
from tests.evaluation.tiny_tokenizers import LINES, make_tokenizer, save_model


def test_files_by_language(tmp_path):
    for name in ("sw.txt", "deu.txt.xz", "news.txt", "a=b.txt", "zh_Hant.txt", "t.en"):
        (tmp_path / name).touch()
    found = text_files([f"{tmp_path}/{name}" for name in ("sw.txt", "deu.txt.xz", "zh_Hant.txt")])
    assert {code: file.name for code, file in found.items()} == {
        "sw": "sw.txt",
        "de": "deu.txt.xz",
        "zh_Hant": "zh_Hant.txt",
    }
    assert list(text_files([f"eng={tmp_path}/news.txt"])) == ["en"]
    for wrong in (f"{tmp_path}/news.txt", f"{tmp_path}/a=b.txt", f"{tmp_path}/t.en"):
        with pytest.raises(CorpusError, match="say the language of the file"):
            text_files([wrong])
    (tmp_path / "sw.csv.gz").touch()
    with pytest.raises(
        CorpusError, match=r"sw\.csv\.gz: is CSV by its ending, .* a \.txt file, a s"
    ):
        text_files([f"{tmp_path}/sw.csv.gz"])


def test_two_models_on_the_same_lines(tmp_path):
    text = tmp_path / "en.txt"
    text.write_text("\n".join([*LINES, " ", *LINES]), encoding="utf-8")
    folders = [
        save_model(make_tokenizer(kind), tmp_path / kind, seed=seed)
        for seed, kind in enumerate(("unigram", "wordpiece"))
    ]
    notes: list[str] = []
    settings = FeatureConfig(limit=8)
    first, second = (
        score_texts(folder, {"en": text}, settings, note=notes.append) for folder in folders
    )
    assert [len(score.lengths.characters) for score in (*first, *second)] == [8, 8]
    assert len(notes) == 1
    assert "drops" in notes[0]
    stream = io.StringIO()
    write_lengths(stream, first)
    file = tmp_path / "first.jsonl"
    file.write_text(stream.getvalue(), encoding="utf-8")
    found = compare_lengths(second, file)
    expected = change(first[0].lengths, second[0].lengths)
    assert found["en"].value == pytest.approx(expected.value)
    assert found["en"].low == pytest.approx(expected.low)
    file.write_text('{"language": "en", "line": 0}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match="has no code length"):
        compare_lengths(second, file)


def test_lines_that_are_not_utf_8_are_not_left_out_without_a_word(tmp_path):
    folder = save_model(make_tokenizer("unigram"), tmp_path / "model", seed=0)
    text = tmp_path / "de.txt"
    text.write_bytes("ein Haus\neine Tür\nzwei Türen\n".encode("latin-1"))
    notes: list[str] = []
    (score,) = score_texts(folder, {"de": text}, FeatureConfig(), note=notes.append)
    assert len(score.lengths.characters) == 1
    assert f"{text}: 2 lines are not UTF-8, or too long, and left out" in notes[0]
    text.write_bytes("eine Tür\n".encode("latin-1"))
    with pytest.raises(CorpusError, match="has no text: 1 lines are not UTF-8"):
        score_texts(folder, {"de": text}, FeatureConfig())


def test_the_first_lines_are_scored_and_a_note_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(score_texts.__globals__, "MAX_LINES", 3)
    text = tmp_path / "en.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    folder = save_model(make_tokenizer("words"), tmp_path / "model")
    notes: list[str] = []
    (score,) = score_texts(folder, {"en": text}, FeatureConfig(), note=notes.append)
    assert len(score.lengths.characters) == 3
    assert any("its first 3 lines are scored" in note for note in notes)
