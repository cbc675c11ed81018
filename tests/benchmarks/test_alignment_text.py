"""The alignment study's text: tidying, splitting, joining, choosing, and keeping the tests out."""

from __future__ import annotations

import pytest
from benchmarks.alignment.choose import alike, choose_pairs, choose_text, fill, spread
from benchmarks.alignment.decontamination import EvaluationSentences
from benchmarks.alignment.languages import LANGUAGES
from benchmarks.alignment.sentences import essence, is_sentence, split, tidy
from benchmarks.alignment.sources import documents, evaluation_pairs, pairs

from tests.benchmarks.data_folder import write_data

BY_CODE = {language.code: language for language in LANGUAGES}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("ar", "فِي ٱلْبَدْءِ خَلَقَ", "في البدء خلق"),
        ("zh", "起初， 神创造 天地。 Kubernetes 是[常]", "起初，神创造天地。 Kubernetes 是常"),
        ("vi", "Tôi nhớ lời anh : tốt lắm !", "Tôi nhớ lời anh: tốt lắm!"),
        ("fr", "Tu crois ?  Oui [12] !", "Tu crois ? Oui !"),
    ],
)
def test_text_is_spelled_as_ordinary_text(code, text, expected):
    assert tidy(text, BY_CODE[code]) == expected


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("Come in. Who is it? “Me!” said he.", ["Come in.", "Who is it?", "“Me!” said he."]),
        (
            "Mr. Li met M. Noir at 3.5 km. It rained.",
            ["Mr. Li met M. Noir at 3.5 km.", "It rained."],
        ),
        ("他来了。“好！”他说。走吧", ["他来了。", "“好！”", "他说。", "走吧"]),
        ("أين هو؟ ذهب.", ["أين هو؟", "ذهب."]),
        ("", []),
    ],
)
def test_paragraphs_are_cut_into_sentences(paragraph, expected):
    assert split(paragraph) == expected


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("en", "It rained all night.", True),
        ("en", "Chapter I", False),
        ("en", "See https://example.org for the rest of it.", False),
        ("ru", "console.log(data) выводит", False),
        ("zh", "我会踢足球。", True),
        ("en", "x" * 601, False),
    ],
)
def test_scraps_are_no_sentences(code, text, expected):
    assert is_sentence(text, BY_CODE[code]) is expected


def test_essence_ignores_case_points_and_spaces():
    assert essence("He said: “No!”") == essence("he SAID no") == "hesaidno"
    assert essence("ＡＢ") == "ab"


def test_verses_are_joined_by_id_and_challenge_lines_by_language(data):
    found = pairs(data, BY_CODE["zh"])
    assert found["bible"][0] == ("In the beginning was verse one.", "起初第一节。")
    assert len(found["bible"]) == 30, "the verse that only English has is left out"
    assert found["tatoeba-challenge"] == [("I know.", "我知道。"), ("He came.", "他來了。")]
    assert found.keys() == {"bible", "tatoeba-challenge"}
    assert pairs(data, BY_CODE["sw"])["mafand"] == [("The news is good.", "Habari ni njema.")]


def test_documents_are_sentences(data):
    assert documents(data, BY_CODE["en"]) == {
        "mdn": [["It rained all night in the town.", "Nobody went out."]],
        "lingua_sentences": [["A sentence of a list."]],
    }


def test_pairs_of_unusual_lengths_are_dropped():
    usual = [(f"{i:03} " + "word " * 8, f"{i:03} " + "mot " * 8) for i in range(9)]
    odd = [
        ("word " * 8, "mot " * 30),
        ("word " * 30, "mot " * 8),
        ("", "mot"),
        ("yes", "oui, bien sûr"),
    ]
    assert alike([*usual, *odd]) == [*usual, odd[-1]], "short ones may differ; empty ones may not"


def test_small_sources_are_taken_whole_and_large_ones_evenly():
    sources = {"small": [0, 1], "large": list(range(100, 140)), "huge": list(range(200, 300))}
    sizes = {name: len(items) for name, items in sources.items()}
    taken = fill(sources, sizes, 42)
    assert taken[:2] == [0, 1]
    assert taken[2:22] == list(range(101, 140, 2))
    assert len(taken) == 42
    assert taken[22:] == list(range(204, 300, 5))
    assert fill(sources, sizes, 1000) == [0, 1, *range(100, 140), *range(200, 300)]
    assert spread([1, 2, 3], 0.0) == []


def test_no_test_sentence_is_trained_on(data, tmp_path):
    found = evaluation_pairs(data)
    assert found["tatoeba"]["en-de"] == [("It is a test.", "Das ist ein Test.")]
    assert len(found["ntrex"]) == len(found["tatoeba"]) == 9
    evaluation_sentences = EvaluationSentences(
        row for by_pair in found.values() for rows in by_pair.values() for row in rows
    )
    chosen = choose_pairs(data, BY_CODE["de"], evaluation_sentences, 100)
    assert evaluation_sentences.dropped["pairs/tatoeba-challenge/de"] == 1, (
        "das ist ein test, in small letters"
    )
    assert len(chosen) == 30
    text = choose_text(data, BY_CODE["de"], evaluation_sentences, 10_000, chosen)
    assert evaluation_sentences.dropped["text/lingua_sentences/de"] == 1
    written = [sentence for document in text for sentence in document]
    assert len(written) == len(set(written)), "each sentence once"
    assert not evaluation_sentences.known & set(map(essence, written))

    leak = tmp_path / "leak.tsv"
    leak.write_text("Hello.\tdas ist ein Test\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="a test's sentence"):
        evaluation_sentences.check([leak])


def test_the_bible_is_text_only_where_other_text_is_short(data):
    evaluation_sentences = EvaluationSentences([])
    little = choose_text(data, BY_CODE["en"], evaluation_sentences, 8, [])
    assert not any("verse" in sentence for document in little for sentence in document)
    much = choose_text(data, BY_CODE["en"], evaluation_sentences, 1000, [])
    assert sum("verse" in sentence for document in much for sentence in document) > 10
